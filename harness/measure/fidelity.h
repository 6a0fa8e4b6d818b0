// Fidelity: distance from exact softmax attention in double precision.
#pragma once

#include <optional>
#include <string>

#include "harness/measure/workload.h"

namespace attn {

enum class InputKind {
  random,
  needle
};  // needle: each query has one key whose logit stands out, at a random place
std::string to_string(InputKind kind);  // "random", "needle"
struct FidelityFigures {
  double relative_error = 0;         // ‖out - exact‖_F / ‖exact‖_F
  double cosine = 0;                 // mean over rows of cos(out, exact)
  std::optional<double> weights_kl;  // mean over rows KL(exact ‖ implied weights), where the
                                     // variant's weights are a distribution
};
// Why the variant has no fidelity figure; nullopt: it has one. measure_fidelity throws this reason.
std::optional<std::string> why_no_fidelity(const WorkloadSpec& spec);
// v is N(0, 1). random: q, k are N(0, input_scale²). needle: exact attention at input_scale 1 puts
// at least 0.9 of its weight on the planted key (see inputs.h). `spec` is read for variant, shape,
// causal, threads and seed.
FidelityFigures measure_fidelity(const WorkloadSpec& spec, InputKind kind, double input_scale);

}  // namespace attn
