// Fidelity: distance from exact softmax attention in double precision.
#pragma once

#include <optional>
#include <string>

#include "harness/measure/workload.h"

namespace attn {

enum class InputKind {
  random,
  needle
};  // needle: each query has one key with a large logit, at a random place
std::string to_string(InputKind kind);  // "random", "needle"
struct FidelityFigures {
  double relative_error = 0;  // ‖out - exact‖_F / ‖exact‖_F
  // In bfloat16, the same where `exact` is of the inputs as they were rounded: without the error of
  // storing them. relative_error and cosine are of the inputs before.
  std::optional<double> rounded_inputs_error;
  double cosine = 0;                 // mean over rows of cos(out, exact)
  std::optional<double> weights_kl;  // mean over rows of KL(exact ‖ implied weights), if the
                                     // weights of the variant are a distribution; not in bfloat16
};
// The reason why fidelity cannot be measured; nullopt if it can. measure_fidelity throws this
// reason.
std::optional<std::string> why_no_fidelity(const WorkloadSpec& spec);
// v is N(0, 1). random: q and k are N(0, input_scale²). needle: exact attention at input_scale 1
// gives the planted key at least 0.9 of the weight (see inputs.h). Uses the variant, shape, causal,
// threads and seed of `spec`.
FidelityFigures measure_fidelity(const WorkloadSpec& spec, InputKind kind, double input_scale);

}  // namespace attn
