// See fidelity_rows.h.
#include "harness/measure/fidelity_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/base/parallel.h"

namespace attn {
namespace {

// Mixed into the implied weights as a uniform share: a key that they leave out costs ln(1/ε) ≈ 14
// nats and not infinity.
constexpr double kShare = 1e-6;

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

// Adds the values of the sequence and head of `row`, weighted, to `sum` [head_dim].
template <class Weight>
void add_weighted(const FidelityInputs& in, int64_t row, const Weight* weights, int64_t count,
                  std::vector<double>& sum) {
  const int64_t n = in.q.dim(2), dim = in.q.dim(3);
  for (int64_t j = 0; j < count; ++j) {
    if (weights[j] == 0) continue;
    const real* value = in.v.data() + (row / n * n + j) * dim;
    for (int64_t c = 0; c < dim; ++c)
      sum[static_cast<size_t>(c)] += static_cast<double>(weights[j]) * value[c];
  }
}

// `weights`: the exact ones of this row. `implied` [length] of this row.
void compare_weights(const FidelityInputs& in, const real* out, const real* implied, int64_t row,
                     const std::vector<double>& weights, RowTotals& sums) {
  const int64_t length = valid_length(in, row);
  sums.divergence = divergence(weights, implied);
  sums.kept = mass_kept(weights, implied);
  sums.read = static_cast<double>(length - std::count(implied, implied + length, real{0}));
  std::vector<double> rest(static_cast<size_t>(in.q.dim(3)));
  add_weighted(in, row, implied, length, rest);
  for (size_t c = 0; c < rest.size(); ++c) {
    sums.unexplained += (out[c] - rest[c]) * (out[c] - rest[c]);
    sums.answered += double{out[c]} * out[c];
  }
}

RowTotals compare_row(const FidelityInputs& in, const Tensor& out, const Tensor& implied,
                      bool causal, int64_t row, std::vector<double>& weights) {
  const int64_t n = in.q.dim(2), dim = in.q.dim(3);
  exact_weights(in, row, causal, weights);
  std::vector<double> exact(static_cast<size_t>(dim));
  add_weighted(in, row, weights.data(), std::ssize(weights), exact);
  RowTotals sums{.rows = 1};
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
  if (implied.defined())
    compare_weights(in, out.data() + row * dim, implied.data() + row * n, row, weights, sums);
  return sums;
}

}  // namespace

RowTotals& RowTotals::operator+=(const RowTotals& more) {
  for (double RowTotals::*sum : {&RowTotals::error, &RowTotals::norm, &RowTotals::cosine,
                                 &RowTotals::divergence, &RowTotals::kept, &RowTotals::read,
                                 &RowTotals::unexplained, &RowTotals::answered, &RowTotals::rows})
    this->*sum += more.*sum;
  return *this;
}

int64_t valid_length(const FidelityInputs& in, int64_t row) {
  const int64_t n = in.q.dim(2), heads = in.q.dim(1);
  return in.lengths.empty() ? n : in.lengths[static_cast<size_t>(row / (n * heads))];
}

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

RowTotals compare_rows(const FidelityInputs& in, const Tensor& out, const Tensor& implied,
                       bool causal) {
  const int64_t n = in.q.dim(2);
  std::vector<RowTotals> rows(static_cast<size_t>(in.q.dim(0) * in.q.dim(1) * n));
  parallel_for(static_cast<int64_t>(rows.size()), 16, [&](int64_t begin, int64_t end) {
    std::vector<double> weights;
    for (int64_t row = begin; row < end; ++row)
      if (row % n < valid_length(in, row))
        rows[static_cast<size_t>(row)] = compare_row(in, out, implied, causal, row, weights);
  });
  RowTotals all;
  for (const RowTotals& row : rows) all += row;
  return all;
}

}  // namespace attn
