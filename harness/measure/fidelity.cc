// Distance of a variant from exact softmax attention, which is computed in double, row by row, by
// its definition. Costs O(batch·heads·length²·head_dim). For weights_kl, twice that time and
// batch·heads·length² numbers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/parallel.h"
#include "harness/measure/effective_rank.h"
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

// What rows add to the figures.
struct RowSums {
  double error = 0, norm = 0;  // squared
  double cosine = 0, divergence = 0, kept = 0;
  double rows = 0;

  RowSums& operator+=(const RowSums& more) {
    for (double RowSums::*sum : {&RowSums::error, &RowSums::norm, &RowSums::cosine,
                                 &RowSums::divergence, &RowSums::kept, &RowSums::rows})
      this->*sum += more.*sum;
    return *this;
  }
};

// Of the sequence of `row`, counted over batch, heads and queries.
int64_t valid_length(const FidelityInputs& in, int64_t row) {
  const int64_t n = in.q.dim(2), heads = in.q.dim(1);
  return in.lengths.empty() ? n : in.lengths[static_cast<size_t>(row / (n * heads))];
}

// Exact weights of query `row` on its visible keys.
void exact_weights(const FidelityInputs& in, int64_t row, bool causal,
                   std::vector<double>& weights) {
  const int64_t n = in.q.dim(2), dim = in.q.dim(3);
  const real* query = in.q.data() + row * dim;
  const real* keys = in.k.data() + row / n * n * dim;
  weights.resize(static_cast<size_t>(causal ? row % n + 1 : valid_length(in, row)));
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

double mass_kept(const std::vector<double>& exact, const real* implied) {
  double kept = 0;
  for (size_t j = 0; j < exact.size(); ++j)
    if (implied[j] > 0) kept += exact[j];
  return kept;
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
  RowSums sums{.rows = 1};
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
  if (implied.defined()) {
    sums.divergence = divergence(weights, implied.data() + row * n);
    sums.kept = mass_kept(weights, implied.data() + row * n);
  }
  return sums;
}

Tensor weights_of(const Attention& attention, const WorkloadSpec& spec, const FidelityInputs& in,
                  const std::vector<Var>& gates) {
  if (!spec.variant->convex(attention.config().params) ||
      spec.batch * spec.heads * spec.length * spec.length > kMostWeights)
    return {};
  return implied_weights(attention, in.q, in.k, {spec.causal, in.lengths},
                         gates);  // [batch, heads, length, length]
}

// `implied`: the weights of the variant; undefined: none.
RowSums compare_rows(const WorkloadSpec& spec, const FidelityInputs& in, const Tensor& out,
                     const Tensor& implied) {
  std::vector<RowSums> rows(static_cast<size_t>(spec.batch * spec.heads * spec.length));
  parallel_for(static_cast<int64_t>(rows.size()), 16, [&](int64_t begin, int64_t end) {
    std::vector<double> weights;
    for (int64_t row = begin; row < end; ++row)
      if (row % spec.length < valid_length(in, row))
        rows[static_cast<size_t>(row)] = compare_row(in, out, implied, spec.causal, row, weights);
  });
  RowSums all;
  for (const RowSums& row : rows) all += row;
  return all;
}

FidelityFigures figures_of(const RowSums& all, bool has_weights) {
  FidelityFigures figures;
  figures.relative_error = std::sqrt(all.error / all.norm);
  figures.cosine = all.cosine / all.rows;
  if (has_weights) {
    figures.weights_kl = all.divergence / all.rows;
    figures.mass_kept = all.kept / all.rows;
  }
  return figures;
}

std::optional<double> mean_effective_rank(const FidelityInputs& in, bool causal) {
  const int64_t n = in.q.dim(2), matrices = std::min(in.q.dim(0) * in.q.dim(1), kMostSpectra);
  if (n > kLongestSpectrum) return std::nullopt;
  std::vector<double> ranks(static_cast<size_t>(matrices));
  parallel_for(matrices, 1, [&](int64_t begin, int64_t end) {
    std::vector<double> row, weights;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t length = valid_length(in, i * n);
      weights.assign(static_cast<size_t>(length * length), 0.0);
      for (int64_t query = 0; query < length; ++query) {
        exact_weights(in, i * n + query, causal, row);
        std::copy_n(row.begin(), std::min(std::ssize(row), length),
                    weights.begin() + query * length);
      }
      ranks[static_cast<size_t>(i)] = effective_rank(weights, length);
    }
  });
  return std::accumulate(ranks.begin(), ranks.end(), 0.0) / static_cast<double>(matrices);
}

// The sums over the rows of each layer; of bfloat16 also those against rounded inputs.
struct LayerSums {
  RowSums own, rounded;
  bool has_weights = false;
};

FidelityFigures figures_of(const LayerSums& sums, Dtype dtype) {
  FidelityFigures figures = figures_of(sums.own, sums.has_weights);
  if (dtype == Dtype::bfloat16)
    figures.rounded_inputs_error = figures_of(sums.rounded, false).relative_error;
  return figures;
}

LayerSums compare_layer(const Workload& workload, const FidelityInputs& in) {
  const WorkloadSpec& spec = workload.spec();
  const Attention& attention = workload.attention();
  const Mask mask{spec.causal, in.lengths};
  const std::vector<Var>& gates = workload.gates();
  LayerSums sums;
  if (spec.dtype == Dtype::bfloat16) {
    const BFloat16Tensor q = rounded(in.q), k = rounded(in.k), v = rounded(in.v);
    const Tensor out = widened(attention.forward(q, k, v, mask, gates));
    sums.own = compare_rows(spec, in, out, {});
    sums.rounded = compare_rows(spec, {widened(q), widened(k), widened(v), in.lengths}, out, {});
    return sums;
  }
  const Tensor out = attention.forward(Var(in.q), Var(in.k), Var(in.v), mask, gates).value();
  const Tensor implied = weights_of(attention, spec, in, gates);
  sums.has_weights = implied.defined();
  sums.own = compare_rows(spec, in, out, implied);
  return sums;
}

WorkloadSpec bare_attention(WorkloadSpec spec) {
  const std::optional<std::string> reason = why_no_fidelity(spec);
  ATTN_CHECK(!reason, "{} {}", spec.variant->name, *reason);
  spec.mode = Mode::forward;
  spec.scope = ScopeKind::attention;
  return spec;
}

}  // namespace

std::string to_string(InputKind kind) {
  switch (kind) {
    case InputKind::random:
      return "random";
    case InputKind::needle:
      return "needle";
    case InputKind::initial:
      return "initial";
    case InputKind::trained:
      return "trained";
  }
  throw_error("unknown kind of input");
}

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
  const WorkloadSpec bare = bare_attention(spec);
  const Workload workload(bare);
  const FidelityInputs in = fidelity_inputs(bare, kind, input_scale);
  const NoGrad no_grad;
  return figures_of(compare_layer(workload, in), spec.dtype);
}

ModelFidelity measure_fidelity(const WorkloadSpec& spec, std::span<const FidelityInputs> layers) {
  ATTN_CHECK(!layers.empty(), "fidelity needs the inputs of a layer");
  const Workload workload(bare_attention(spec));
  const Shape expected{spec.batch, spec.heads, spec.length, spec.head_dim};
  const NoGrad no_grad;
  LayerSums all;
  ModelFidelity model;
  for (const FidelityInputs& in : layers) {
    ATTN_CHECK(in.q.shape() == expected, "captured queries are {}, expected {}", in.q.shape().str(),
               expected.str());
    const LayerSums sums = compare_layer(workload, in);
    model.layers.push_back({figures_of(sums, spec.dtype), mean_effective_rank(in, spec.causal)});
    all.own += sums.own;
    all.rounded += sums.rounded;
    all.has_weights = sums.has_weights;
  }
  model.all = figures_of(all, spec.dtype);
  return model;
}

}  // namespace attn
