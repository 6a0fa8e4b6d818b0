// Checks of algebraic properties: linearity in v, convex weights, permutation equivariance, and
// finite outputs for extreme logits. Computing the weights costs kv_len / head_dim forward passes.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "harness/check/variant_checks.h"
#include "harness/model/implied_weights.h"

namespace attn {
namespace {

Tensor combined(double a, const Tensor& x, double b, const Tensor& y) {
  Tensor result(x.shape());
  for (int64_t i = 0; i < x.size(); i++) result[i] = static_cast<real>(a * x[i] + b * y[i]);
  return result;
}

std::vector<int64_t> shuffled(int64_t length, Rng random) {
  std::vector<int64_t> order(static_cast<size_t>(length));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

// Row i of the result is row order[i] of t = [batch, heads, len, dim].
Tensor reordered(const Tensor& t, const std::vector<int64_t>& order) {
  Tensor result(t.shape());
  const int64_t len = t.dim(2), dim = t.dim(3);
  for (int64_t row = 0; row < t.size() / dim; row++) {
    const int64_t from = row / len * len + order[static_cast<size_t>(row % len)];
    std::copy_n(t.data() + from * dim, dim, result.data() + row * dim);
  }
  return result;
}

struct RowSum {
  double sum = 0, lowest = 0, hidden = 0;  // hidden: largest weight of a key that the mask hides
  bool zero = true;
};

RowSum sum_row(const real* weights, int64_t kv_len, int64_t visible) {
  RowSum row;
  for (int64_t j = 0; j < kv_len; j++) {
    const double weight = weights[j];
    row.sum += weight;
    row.lowest = std::min(row.lowest, weight);
    if (j >= visible && !(std::abs(weight) <= row.hidden)) row.hidden = std::abs(weight);
    if (weight != 0) row.zero = false;
  }
  return row;
}

void check_rows(const Tensor& weights, const AttentionShape& shape,
                const std::vector<int64_t>& lengths, Verdict& verdict) {
  const double allowed = tolerance(shape.kv_len);
  for (int64_t row = 0; row < weights.size() / shape.kv_len; row++) {
    const int64_t i = row % shape.q_len, entry = row / shape.q_len / shape.heads;
    int64_t visible = lengths.empty() ? shape.kv_len : lengths[static_cast<size_t>(entry)];
    if (shape.causal) visible = std::min(visible, i + shape.kv_len - shape.q_len + 1);
    const RowSum sums = sum_row(weights.data() + row * shape.kv_len, shape.kv_len, visible);
    verdict.expect(sums.hidden, allowed, "row {} gives {:.1e} to a hidden key ({})", i, sums.hidden,
                   text(shape));
    // A window may hold no valid key beside padding or before the first key; its row must be zero
    // throughout.
    const bool may_be_empty = !lengths.empty() || shape.q_len > shape.kv_len;
    if (visible <= 0 || (may_be_empty && sums.zero)) continue;
    verdict.expect(std::abs(sums.sum - 1), allowed, "the weights of row {} sum to 1 + {:.1e} ({})",
                   i, sums.sum - 1, text(shape));
    verdict.expect(-sums.lowest, allowed, "row {} has a weight of {:.1e} ({})", i, sums.lowest,
                   text(shape));
  }
}

}  // namespace

// Far larger values than a normal distribution has: what is clipped shows.
void check_linearity(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 4);
    const Tensor other = make_inputs(*attention, shape, 5).v;
    const Mask mask = mask_of(shape);
    const Tensor both = output_of(*attention, x.with_values(combined(70, x.v, -130, other)), mask);
    const Tensor sum = combined(70, output_of(*attention, x, mask), -130,
                                output_of(*attention, x.with_values(other), mask));
    const Gap off = gap(both, sum);
    verdict.expect(off.size, tolerance(shape.kv_len),
                   "row {} of f(70·v - 130·w) is off by {:.1e} ({})", off.row, off.size,
                   text(shape));
  }
}

void check_convexity(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all, 65)) {
    if (!subject.info.convex(subject.params, shape.causal)) continue;
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 6);
    check_rows(implied_weights(*attention, x.q, x.k, mask_of(shape), leaves_of(x.gates)), shape, {},
               verdict);
    if (!subject.info.traits.padding || shape.kv_len < 2) continue;
    const std::vector<int64_t> lengths = {shape.kv_len - 1, shape.kv_len / 2};
    check_rows(implied_weights(*attention, x.q, x.k, mask_of(shape, lengths), leaves_of(x.gates)),
               shape, lengths, verdict);
  }
}

void check_permutation(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::all)) {
    if (shape.causal) continue;
    const auto attention = subject.build(shape);
    const Inputs x = make_inputs(*attention, shape, 7);
    const auto keys = shuffled(shape.kv_len, rng(7, "key order"));
    // A mixer reads values alone: its outputs move with them.
    const auto queries =
        subject.info.traits.mixer ? keys : shuffled(shape.q_len, rng(7, "query order"));
    const Tensor base = output_of(*attention, x, mask_of(shape));
    Inputs moved{reordered(x.q, queries), reordered(x.k, keys), reordered(x.v, keys)};
    for (const Tensor& gate : x.gates) moved.gates.push_back(reordered(gate, keys));
    const Tensor out = output_of(*attention, moved, mask_of(shape));
    const Gap off = gap(out, reordered(base, queries));
    verdict.expect(off.size, tolerance(shape.kv_len),
                   "row {} is off by {:.1e} when positions are permuted ({})", off.row, off.size,
                   text(shape));
  }
}

void check_range(const Subject& subject, Verdict& verdict) {
  for (const AttentionShape& shape : subject.shapes(ShapeKind::self)) {
    const auto attention = subject.build(shape);
    for (const double scale : {0.0, 1e-20, 60.0}) {  // logits up to about ±1e4
      const Inputs x = make_inputs(*attention, shape, 8, scale);
      const double size = largest(output_of(*attention, x, mask_of(shape)));
      // Random features, whose order of keys does not matter, underflow at such logits: their
      // coarse weights only have to stay finite. Where terms of both signs cancel, rounding may be
      // as large as the values.
      const Traits& traits = subject.info.traits;
      const bool hull = subject.info.convex(subject.params, shape.causal) &&
                        !(traits.random && traits.permutable && scale > 1);
      const double rounding =
          scale > 1 && subject.info.weights_cancel ? 1 : tolerance(shape.kv_len);
      const double bound = hull ? largest(x.v) * (1 + rounding) : 1e30;
      verdict.expect(size, bound, "outputs reach {:.7g} for queries and keys of scale {:g} ({})",
                     size, scale, text(shape));
      const Gradients back = gradients_of(*attention, x, mask_of(shape), make_seed(shape, 9));
      double slope = largest_of_inputs(back);
      for (const Tensor& weight : back.weights) slope += largest(weight);
      verdict.require(slope < 1e30,
                      "gradients reach {:.1e} for queries and keys of scale {:g} ({})", slope,
                      scale, text(shape));
    }
  }
}

}  // namespace attn
