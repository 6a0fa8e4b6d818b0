// Distance of a variant from exact softmax attention, which is computed in double, row by row, by
// its definition. Costs O(batch·heads·length²·head_dim). For weights_kl, twice that time and
// batch·heads·length² numbers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/parallel.h"
#include "harness/measure/fidelity.h"
#include "harness/measure/inputs.h"
#include "harness/model/implied_weights.h"

namespace attn {
namespace {

// Mixed into the implied weights as a uniform share: a key that they leave out costs ln(1/ε) ≈ 14
// nats and not infinity.
constexpr double kShare = 1e-6;
constexpr int64_t kMostWeights =
    int64_t{1} << 28;  // 1 GiB of implied weights; above it there is no weights_kl

// What one row adds to the figures.
struct RowSums {
  double error = 0, norm = 0;  // squared
  double cosine = 0, divergence = 0;
};

// Exact weights of query `row` (counted over batch and heads) on its visible keys.
void exact_weights(const FidelityInputs& in, int64_t row, bool causal,
                   std::vector<double>& weights) {
  const int64_t n = in.q.dim(2), dim = in.q.dim(3);
  const real* query = in.q.data() + row * dim;
  const real* keys = in.k.data() + row / n * n * dim;
  weights.resize(static_cast<size_t>(causal ? row % n + 1 : n));
  for (size_t j = 0; j < weights.size(); ++j) {
    const real* key = keys + static_cast<int64_t>(j) * dim;
    weights[j] = std::inner_product(query, query + dim, key, 0.0, std::plus<>(),
                                    [](double a, double b) { return a * b; });
    weights[j] /= std::sqrt(static_cast<double>(dim));
  }
  const double highest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - highest);
  for (double& weight : weights) weight /= total;
}

double divergence(const std::vector<double>& exact, const real* implied) {
  const double uniform = 1 / static_cast<double>(exact.size());
  double sum = 0;
  for (size_t j = 0; j < exact.size(); ++j) {
    // Rounding may leave a weight a little below zero; NaN stays NaN.
    const double weight = implied[j] < 0 ? 0.0 : static_cast<double>(implied[j]);
    if (exact[j] > 0)
      sum += exact[j] * std::log(exact[j] / ((1 - kShare) * weight + kShare * uniform));
  }
  return sum;
}

RowSums compare_row(const FidelityInputs& in, const Tensor& out, const Tensor& implied, bool causal,
                    int64_t row, std::vector<double>& weights) {
  const int64_t n = in.q.dim(2), dim = in.q.dim(3);
  exact_weights(in, row, causal, weights);
  std::vector<double> exact(static_cast<size_t>(dim));
  for (size_t j = 0; j < weights.size(); ++j) {
    const real* value = in.v.data() + (row / n * n + static_cast<int64_t>(j)) * dim;
    for (int64_t c = 0; c < dim; ++c) exact[static_cast<size_t>(c)] += weights[j] * value[c];
  }
  RowSums sums;
  double product = 0, length = 0;
  for (int64_t c = 0; c < dim; ++c) {
    const double want = exact[static_cast<size_t>(c)], got = out[row * dim + c];
    sums.error += (got - want) * (got - want);
    sums.norm += want * want;
    product += got * want;
    length += got * got;
  }
  if (length != 0)
    sums.cosine = product / std::sqrt(length * sums.norm);  // an output of zeros points nowhere: 0
  if (implied.defined()) sums.divergence = divergence(weights, implied.data() + row * n);
  return sums;
}

Tensor weights_of(const Attention& attention, const WorkloadSpec& spec, const FidelityInputs& in,
                  const std::vector<Var>& gates) {
  if (!spec.variant->convex(attention.config().params) ||
      spec.batch * spec.heads * spec.length * spec.length > kMostWeights)
    return {};
  return implied_weights(attention, in.q, in.k, {spec.causal, {}},
                         gates);  // [batch, heads, length, length]
}

// `implied`: the weights of the variant; undefined: none.
FidelityFigures compare_rows(const WorkloadSpec& spec, const FidelityInputs& in, const Tensor& out,
                             const Tensor& implied) {
  std::vector<RowSums> rows(static_cast<size_t>(spec.batch * spec.heads * spec.length));
  parallel_for(static_cast<int64_t>(rows.size()), 16, [&](int64_t begin, int64_t end) {
    std::vector<double> weights;
    for (int64_t row = begin; row < end; ++row) {
      rows[static_cast<size_t>(row)] = compare_row(in, out, implied, spec.causal, row, weights);
    }
  });
  RowSums all;
  for (const RowSums& row : rows) {
    all.error += row.error;
    all.norm += row.norm;
    all.cosine += row.cosine;
    all.divergence += row.divergence;
  }
  const auto count = static_cast<double>(rows.size());
  FidelityFigures figures;
  figures.relative_error = std::sqrt(all.error / all.norm);
  figures.cosine = all.cosine / count;
  if (implied.defined()) figures.weights_kl = all.divergence / count;
  return figures;
}

}  // namespace

std::string to_string(InputKind kind) { return kind == InputKind::random ? "random" : "needle"; }

std::optional<std::string> why_no_fidelity(const WorkloadSpec& spec) {
  const VariantInfo::Reads read = spec.variant->read_by(spec.chosen());
  if (read.queries && read.keys) return std::nullopt;
  return fmt::format("ignores {}: it does not approximate attention of independent ones",
                     read.queries ? "keys"
                     : read.keys  ? "queries"
                                  : "queries and keys");
}

FidelityFigures measure_fidelity(const WorkloadSpec& spec, InputKind kind, double input_scale) {
  ATTN_CHECK(input_scale > 0, "input_scale {} is not above 0", input_scale);
  const std::optional<std::string> reason = why_no_fidelity(spec);
  ATTN_CHECK(!reason, "{} {}", spec.variant->name, *reason);
  WorkloadSpec bare = spec;
  bare.mode = Mode::forward;
  bare.scope = ScopeKind::attention;
  const Workload workload(bare);
  const FidelityInputs in = fidelity_inputs(bare, kind, input_scale);
  const NoGrad no_grad;
  const Attention& attention = workload.attention();
  const Mask mask{spec.causal, {}};
  const std::vector<Var>& gates = workload.gates();
  if (spec.dtype == Dtype::bfloat16) {
    const BFloat16Tensor q = rounded(in.q), k = rounded(in.k), v = rounded(in.v);
    const Tensor out = widened(attention.forward(q, k, v, mask, gates));
    FidelityFigures figures = compare_rows(spec, in, out, {});
    figures.rounded_inputs_error =
        compare_rows(spec, {widened(q), widened(k), widened(v)}, out, {}).relative_error;
    return figures;
  }
  const Tensor out = attention.forward(Var(in.q), Var(in.k), Var(in.v), mask, gates).value();
  return compare_rows(spec, in, out, weights_of(attention, bare, in, gates));
}

}  // namespace attn
