// See fidelity.h; rows are compared in fidelity_rows.cc. The weights of a variant cost
// length / head_dim forward passes, as much time again as exact attention and
// batch·heads·length² numbers; a rank costs O(length³) for each of kMostSpectra heads.
#include "harness/measure/fidelity.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/base/parallel.h"
#include "harness/measure/fidelity_rows.h"
#include "harness/measure/inputs.h"
#include "harness/measure/ranks.h"
#include "harness/model/decoded_rows.h"
#include "harness/model/implied_weights.h"
#include "variants/api/forgetting.h"

namespace attn {
namespace {

// 1 GiB of implied weights; above it they are unknown.
constexpr int64_t kMostWeights = int64_t{1} << 28;
// Of an output, relative: what the values times the implied weights may miss. Rounding is 1e-5 and
// less; where the weights of channels differ, or the output is not linear in the values, as much is
// missing as is there.
constexpr double kUnexplained = 1e-3;

using Rank = std::function<double(const std::vector<double>& matrix, int64_t rows)>;

// The mean over the first kMostSpectra sequences and heads of a rank of the matrix whose rows
// `fill` gives: the weights of the query `row`, counted over batch, heads and queries, on the
// `length` keys of its sequence, zeros before. nullopt above kLongestSpectrum keys.
std::optional<double> mean_rank(const FidelityInputs& in, const Rank& rank,
                                const std::function<void(int64_t row, double* weights)>& fill) {
  const int64_t n = in.q.dim(2), matrices = std::min(in.q.dim(0) * in.q.dim(1), kMostSpectra);
  if (n > kLongestSpectrum) return std::nullopt;
  std::vector<double> ranks(static_cast<size_t>(matrices));
  parallel_for(matrices, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t length = valid_length(in, i * n);
      std::vector<double> matrix(static_cast<size_t>(length * length));
      for (int64_t query = 0; query < length; ++query)
        fill(i * n + query, matrix.data() + query * length);
      ranks[static_cast<size_t>(i)] = rank(matrix, length);
    }
  });
  return std::accumulate(ranks.begin(), ranks.end(), 0.0) / static_cast<double>(matrices);
}

std::optional<double> exact_rank(const FidelityInputs& in, bool causal) {
  return mean_rank(in, effective_rank, [&](int64_t row, double* weights) {
    std::vector<double> exact;
    exact_weights(in, row, causal, exact);
    std::copy(exact.begin(), exact.end(), weights);
  });
}

std::optional<double> implied_rank(const FidelityInputs& in, const Tensor& implied) {
  return mean_rank(in, numerical_rank, [&](int64_t row, double* weights) {
    std::copy_n(implied.data() + row * in.q.dim(2), valid_length(in, row), weights);
  });
}

// What is summed over layers; of bfloat16 also the rows against rounded inputs.
struct LayerSums {
  RowTotals own, rounded;
  bool is_distribution = false;  // the weights are known and not negative, and sum to one
  bool is_explained = false;     // the weights are known and those of every channel
  std::optional<double> rank;    // of the weights, where they are explained
};

FidelityFigures figures_of(const LayerSums& sums, Dtype dtype) {
  const RowTotals& all = sums.own;
  FidelityFigures figures;
  figures.relative_error = std::sqrt(all.error / all.norm);
  figures.cosine = all.cosine / all.rows;
  if (sums.is_distribution) {
    figures.weights_kl = all.divergence / all.rows;
    figures.mass_kept = all.kept / all.rows;
  }
  if (sums.is_explained) {
    figures.keys_read = all.read / all.rows;
    figures.weights_rank = sums.rank;
  }
  if (dtype == Dtype::bfloat16)
    figures.rounded_inputs_error = std::sqrt(sums.rounded.error / sums.rounded.norm);
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
    sums.own = compare_rows(in, out, {}, spec.causal);
    sums.rounded =
        compare_rows({widened(q), widened(k), widened(v), in.lengths}, out, {}, spec.causal);
    return sums;
  }
  // Then the answers of decoding.
  const bool is_decoded = spec.cache != CacheType::float32 || as_forgetting(attention);
  const Tensor out = is_decoded
                         ? decoded_rows(attention, spec.cache, in.q, in.k, in.v, gates)
                         : attention.forward(Var(in.q), Var(in.k), Var(in.v), mask, gates).value();
  Tensor implied;  // [batch, heads, length, length]
  if (computes_weights(spec))
    implied = is_decoded ? decoded_weights(attention, spec.cache, in.q, in.k, gates)
                         : implied_weights(attention, in.q, in.k, mask, gates);
  sums.own = compare_rows(in, out, implied, spec.causal);
  if (!implied.defined()) return sums;
  sums.is_distribution = spec.variant->convex(attention.config().params, spec.causal);
  sums.is_explained =
      sums.own.unexplained <= kUnexplained * kUnexplained * sums.own.answered;  // NaN is not
  if (sums.is_explained) sums.rank = implied_rank(in, implied);
  return sums;
}

// The rows of all layers; the rank is the mean over the layers.
LayerSums pooled(const std::vector<LayerSums>& layers) {
  LayerSums all{.is_distribution = true, .is_explained = true, .rank = 0};
  for (const LayerSums& layer : layers) {
    all.own += layer.own;
    all.rounded += layer.rounded;
    all.is_distribution = all.is_distribution && layer.is_distribution;
    all.is_explained = all.is_explained && layer.is_explained;
    if (!layer.rank) all.rank.reset();
    if (all.rank) *all.rank += *layer.rank / static_cast<double>(layers.size());
  }
  return all;
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
  if (spec.cache != CacheType::float32 && spec.dtype != Dtype::float32)
    return "fidelity with kv_dtype is of queries in float32";
  if (!spec.causal && forgets_of(*spec.variant, spec.chosen()))
    return "forgets while it decodes, which is causal; add --causal true";
  const VariantInfo::Reads read = spec.variant->read_by(spec.chosen());
  if (read.queries && read.keys) return std::nullopt;
  return fmt::format("ignores {}: it does not approximate attention of independent ones",
                     read.queries ? "keys"
                     : read.keys  ? "queries"
                                  : "queries and keys");
}

bool computes_weights(const WorkloadSpec& spec) {
  return spec.dtype == Dtype::float32 &&
         spec.batch * spec.heads * spec.length * spec.length <= kMostWeights;
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
  WorkloadSpec bare = bare_attention(spec);
  const Shape expected{spec.batch, spec.heads, spec.length, spec.head_dim};
  const NoGrad no_grad;
  std::vector<LayerSums> sums;
  ModelFidelity model;
  for (const FidelityInputs& in : layers) {
    bare.layer = static_cast<int64_t>(model.layers.size());
    const Workload workload(bare);
    ATTN_CHECK(in.q.shape() == expected, "captured queries are {}, expected {}", in.q.shape().str(),
               expected.str());
    sums.push_back(compare_layer(workload, in));
    model.layers.push_back({figures_of(sums.back(), spec.dtype), exact_rank(in, spec.causal)});
  }
  model.all = figures_of(pooled(sums), spec.dtype);
  return model;
}

}  // namespace attn
