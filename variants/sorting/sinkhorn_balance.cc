// Sinkhorn normalisation of block scores: columns and rows are normalised in turn, in logarithms;
// see block_sorting.h. Tay et al. 2020, arXiv:2002.11296, section 3.1. 2·iterations exponentials a
// score; the backward recomputes the result of every step.
#include <algorithm>
#include <cmath>

#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
#include "variants/sorting/block_sorting.h"

namespace attn {
namespace {

constexpr int64_t kStripe = 64;  // columns taken together

// stripe(first, count): the columns of an n-wide matrix, a stripe at a time.
template <class Stripe>
void over_stripes(int64_t n, const Stripe& stripe) {
  for (int64_t first = 0; first < n; first += kStripe) stripe(first, std::min(kStripe, n - first));
}

// Every column of x, n by n, minus the logarithm of its sum.
void normalise_columns(int64_t n, real* x) {
  over_stripes(n, [&](int64_t first, int64_t count) {
    alignas(64) real largest[kStripe], sum[kStripe], terms[kStripe];
    std::fill_n(largest, kStripe, -kInfinity);
    std::fill_n(sum, kStripe, real(0));
    for (int64_t i = 0; i < n; ++i) {
      const real* const row = x + i * n + first;
      ATTN_INDEPENDENT
      for (int64_t j = 0; j < count; ++j) largest[j] = largest[j] < row[j] ? row[j] : largest[j];
    }
    for (int64_t i = 0; i < n; ++i) {
      const real* const row = x + i * n + first;
      for (int64_t j = 0; j < count; ++j) terms[j] = row[j] - largest[j];
      exp_row(count, terms, 1, 0, terms);
      for (int64_t j = 0; j < count; ++j) sum[j] += terms[j];
    }
    for (int64_t j = 0; j < count; ++j) sum[j] = largest[j] + std::log(sum[j]);
    for (int64_t i = 0; i < n; ++i) {
      real* const row = x + i * n + first;
      ATTN_INDEPENDENT
      for (int64_t j = 0; j < count; ++j) row[j] -= sum[j];
    }
  });
}

void normalise(int64_t n, real* x, bool columns) {
  if (columns) return normalise_columns(n, x);
  for (int64_t i = 0; i < n; ++i) {
    real* const row = x + i * n;
    const real sum = log_sum_row(n, row);
    ATTN_INDEPENDENT
    for (int64_t j = 0; j < n; ++j) row[j] -= sum;
  }
}

// The gradient of y = x - log Σ exp(x) along lines: dx = dy - exp(y)·Σ dy; y and dy n by n.
void normalise_back(int64_t n, const real* y, real* grads, bool columns) {
  alignas(64) real weights[kStripe];
  if (!columns) {
    for (int64_t i = 0; i < n; ++i) {
      const real* const from = y + i * n;
      real* const to = grads + i * n;
      const real sum = sum_in_row(to, n);
      over_stripes(n, [&](int64_t first, int64_t count) {
        exp_row(count, from + first, 1, 0, weights);
        for (int64_t j = 0; j < count; ++j) to[first + j] -= weights[j] * sum;
      });
    }
    return;
  }
  over_stripes(n, [&](int64_t first, int64_t count) {
    alignas(64) real sum[kStripe] = {};
    add_column_sums(sum, grads + first, n, count, n);
    for (int64_t i = 0; i < n; ++i) {
      const real* const from = y + i * n + first;
      real* const to = grads + i * n + first;
      exp_row(count, from, 1, 0, weights);
      for (int64_t j = 0; j < count; ++j) to[j] -= weights[j] * sum[j];
    }
  });
}

struct Balance {
  Tensor scores;
  double temperature;
  int64_t iterations, block, len;
  IndexList lengths;

  int64_t all() const { return scores.dim(2); }
  int64_t blocks(int64_t head) const {
    return Blocks(length_of(lengths, head / scores.dim(1), len), block).count;
  }
  // The valid scores / temperature, dense.
  void start(int64_t head, int64_t n, real* x) const {
    const real* const from = scores.data() + head * all() * all();
    for (int64_t i = 0; i < n * n; ++i)
      x[i] = from[i / n * all() + i % n] / static_cast<real>(temperature);
  }
};

void balance_back(const Balance& p, const Tensor& grad, const Tensor& to) {
  const Mark mark(Part::sorting);
  const int64_t m = p.all(), steps = 2 * p.iterations;
  run_tasks(to.dim(0) * to.dim(1), (steps + 1) * m * m, [&](int64_t head, real* work) {
    const int64_t n = p.blocks(head), size = n * n;
    real* const grads = work + steps * m * m;
    p.start(head, n, work);
    for (int64_t s = 0; s < steps; ++s) {  // every step's result, made again
      if (s > 0) std::copy_n(work + (s - 1) * size, size, work + s * size);
      normalise(n, work + s * size, s % 2 == 0);
    }
    for (int64_t i = 0; i < size; ++i) grads[i] = grad[head * m * m + i / n * m + i % n];
    for (int64_t s = steps - 1; s >= 0; --s) normalise_back(n, work + s * size, grads, s % 2 == 0);
    for (int64_t i = 0; i < size; ++i)
      to[head * m * m + i / n * m + i % n] += grads[i] / static_cast<real>(p.temperature);
  });
}

}  // namespace

Var balanced(const Var& scores, double temperature, int64_t iterations, int64_t block, int64_t len,
             std::span<const int64_t> lengths) {
  const Mark mark(Part::sorting);
  const Balance p{scores.value(), temperature, iterations, block, len, copied(lengths)};
  const Tensor out = Tensor::full(scores.shape(), -kInfinity);
  const int64_t m = p.all();
  run_tasks(out.dim(0) * out.dim(1), m * m, [&](int64_t head, real* work) {
    const int64_t n = p.blocks(head);
    p.start(head, n, work);
    for (int64_t s = 0; s < 2 * iterations; ++s) normalise(n, work, s % 2 == 0);
    for (int64_t i = 0; i < n; ++i) std::copy_n(work + i * n, n, out.data() + head * m * m + i * m);
  });
  return custom_op(out, {scores}, [p](const Tensor& grad, std::span<Tensor> grads) {
    balance_back(p, grad, grads[0]);
  });
}

double balancing_workspace(int64_t heads, int64_t len, int64_t block) {
  const int64_t count = Blocks(len, block).count;
  return static_cast<double>(workspace_bytes(heads, count * count));
}

}  // namespace attn
