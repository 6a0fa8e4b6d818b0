// Fidelity: distance from exact softmax attention in double precision.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/measure/workload.h"

namespace attn {

// needle: each query has one key with a large logit, at a random place. initial, trained: what the
// attention of a model reads on test sequences, before training and after; see
// harness/train/captured.h.
enum class InputKind { random, needle, initial, trained };
std::string to_string(InputKind kind);
constexpr bool is_captured(InputKind kind) {
  return kind == InputKind::initial || kind == InputKind::trained;
}

// Of one attention layer.
struct FidelityInputs {
  Tensor q, k, v;                     // [batch, heads, length, head_dim]
  std::vector<int64_t> lengths = {};  // as Mask::kv_lengths; rows from there on are not compared
};

struct FidelityFigures {
  double relative_error = 0;  // ‖out - exact‖_F / ‖exact‖_F
  // In bfloat16, the same where `exact` is of the inputs as they were rounded: without the error of
  // storing them. relative_error and cosine are of the inputs before.
  std::optional<double> rounded_inputs_error;
  double cosine = 0;                 // mean over rows of cos(out, exact)
  std::optional<double> weights_kl;  // mean over rows of KL(exact ‖ implied weights), if the
                                     // weights of the variant are a distribution; not in bfloat16
  // Where weights_kl is: the share of exact attention's weight on keys that the variant gives a
  // weight above 0; mean over rows.
  std::optional<double> mass_kept;

  // What the variant spends, told by its weights, whatever it declares. Known where the outputs are
  // the values times one matrix of weights for each head, up to rounding; not in bfloat16.
  // The number of keys whose weight is not zero; mean over rows. What a pattern hides has exactly
  // zero in float, and so has a key whose weight is below the smallest number, 1e-38 of a row's
  // largest: it is not read either.
  std::optional<double> keys_read;
  // The numerical rank of the weights, see ranks.h; the mean over the first kMostSpectra sequences
  // and heads, and over layers. nullopt above kLongestSpectrum keys.
  std::optional<double> weights_rank;
};
inline constexpr int64_t kMostSpectra = 8, kLongestSpectrum = 1024;

// The reason why fidelity cannot be measured; nullopt if it can. measure_fidelity throws this
// reason.
std::optional<std::string> why_no_fidelity(const WorkloadSpec& spec);
// Whether measure_fidelity computes the weights of the variant, to see whether they explain its
// outputs: they are not too many. Costs length / head_dim forward passes.
bool computes_weights(const WorkloadSpec& spec);
// v is N(0, 1). random: q and k are N(0, input_scale²). needle: exact attention at input_scale 1
// gives the planted key at least 0.9 of the weight (see inputs.h). Uses the variant, shape, causal,
// threads and seed of `spec`.
FidelityFigures measure_fidelity(const WorkloadSpec& spec, InputKind kind, double input_scale);

// The same for the inputs of each layer of a model, which have the shape of `spec`.
struct LayerFidelity {
  FidelityFigures figures;
  // Of exact attention's weights, see ranks.h: the mean over the first kMostSpectra sequences and
  // heads; nullopt above kLongestSpectrum keys.
  std::optional<double> effective_rank;
};
struct ModelFidelity {
  FidelityFigures all;  // over the rows of all layers
  std::vector<LayerFidelity> layers;
};
ModelFidelity measure_fidelity(const WorkloadSpec& spec, std::span<const FidelityInputs> layers);

}  // namespace attn
