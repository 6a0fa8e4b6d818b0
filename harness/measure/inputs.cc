// Random and needle inputs; see inputs.h. The cosines of needle inputs cost
// O(batch·heads·length²·head_dim).
#include "harness/measure/inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/parallel.h"

namespace attn {
namespace {

constexpr double kOdds = 9;  // needle to all others: a weight of 9/(9 + 1) = 0.9
constexpr double kLeastMargin =
    0.05;  // of 1 - cosine: keeps logits finite where two directions nearly agree

// Rows of k become directions of norm `norm`.
void normalise_rows(const Tensor& k, double norm) {
  const int64_t dim = k.dim(-1);
  for (int64_t row = 0; row < k.size() / dim; ++row) {
    real* x = k.data() + row * dim;
    const double length = std::sqrt(std::inner_product(x, x + dim, x, 0.0));
    for (int64_t c = 0; c < dim; ++c) x[c] = static_cast<real>(x[c] * norm / length);
  }
}

// T of inputs.h for the query whose needle is row `place` of `keys` [visible, dim], directions of
// norm `norm`.
double needle_logit(const real* keys, int64_t visible, int64_t dim, int64_t place, double norm) {
  double closest = -1;
  for (int64_t j = 0; j < visible; ++j) {
    if (j == place) continue;
    const real* key = keys + j * dim;
    closest = std::max(closest,
                       std::inner_product(key, key + dim, keys + place * dim, 0.0) / (norm * norm));
  }
  const auto others = static_cast<double>(std::max<int64_t>(1, visible - 1));
  return std::log(kOdds * others) / std::max(kLeastMargin, 1 - closest);
}

void plant_needles(const WorkloadSpec& spec, double scale, const FidelityInputs& inputs) {
  const int64_t n = spec.length, dim = spec.head_dim;
  const double norm = scale * std::sqrt(static_cast<double>(dim));
  normalise_rows(inputs.k, norm);
  const std::vector<int64_t> places = needle_places(spec);
  parallel_for(static_cast<int64_t>(places.size()), 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const real* keys = inputs.k.data() + row / n * n * dim;
      const int64_t visible = spec.causal ? row % n + 1 : n,
                    place = places[static_cast<size_t>(row)];
      const double logit = needle_logit(keys, visible, dim, place, norm);
      // q = k·logit/√dim has the logit q·k/√dim = logit·k·k/dim = logit·scale².
      const double factor = logit / std::sqrt(static_cast<double>(dim));
      for (int64_t c = 0; c < dim; ++c) {
        inputs.q[row * dim + c] = static_cast<real>(factor * keys[place * dim + c]);
      }
    }
  });
}

}  // namespace

std::vector<int64_t> needle_places(const WorkloadSpec& spec) {
  Rng stream = rng(spec.seed, "needle places");
  std::vector<int64_t> places(static_cast<size_t>(spec.batch * spec.heads * spec.length));
  for (size_t row = 0; row < places.size(); ++row) {
    const int64_t i = static_cast<int64_t>(row) % spec.length;
    places[row] = stream.between(0, spec.causal ? i : spec.length - 1);
  }
  return places;
}

FidelityInputs fidelity_inputs(const WorkloadSpec& spec, InputKind kind, double scale) {
  ATTN_CHECK(!is_captured(kind), "input {} comes from a model", to_string(kind));
  const Shape shape{spec.batch, spec.heads, spec.length, spec.head_dim};
  FidelityInputs inputs;
  inputs.k = Tensor::normal(shape, rng(spec.seed, "fidelity k"), scale);
  inputs.v = Tensor::normal(shape, rng(spec.seed, "fidelity v"));
  if (kind == InputKind::random) {
    inputs.q = Tensor::normal(shape, rng(spec.seed, "fidelity q"), scale);
  } else {
    inputs.q = Tensor(shape);
    plant_needles(spec, scale, inputs);
  }
  return inputs;
}

}  // namespace attn
