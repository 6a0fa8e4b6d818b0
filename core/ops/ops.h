// Differentiable ops on Var. Shapes are written as [..]; a row is a slice along the last dimension.
// A wrong shape is an Error. The groups below follow the files ops_elementwise.cc, ops_mask.cc,
// ops_matmul.cc, ops_linear.cc, ops_feed_forward.cc, ops_shape.cc, ops_reduce.cc, ops_norm.cc and
// ops_loss.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/var.h"
#include "core/base/rng.h"

namespace attn {

// Only products count FLOPs: matmul, linear and feed_forward. The other ops pass over their input
// once and are bound by memory bandwidth.

// Elementwise. `b` has the shape of `a` or is broadcast to it. For `a` = [.., n], `b` may be [n], a
// single element, or [.., 1] (a number for each row, such as the result of row_norm). For `a` =
// [batch, heads, m, n], `b` may also be [heads, m, n] or [m, n].
Var add(const Var& a, const Var& b);
Var subtract(const Var& a, const Var& b);
Var multiply(const Var& a, const Var& b);
Var divide(const Var& a, const Var& b);
Var scale(const Var& a, double factor);
Var shift(const Var& a, double offset);
Var exponential(const Var& a);
Var logarithm(const Var& a);
Var square_root(const Var& a);
Var rsqrt(const Var& a);       // 1/√x
Var reciprocal(const Var& a);  // 1/x
Var square(const Var& a);
Var relu(const Var& a);
Var elu(const Var& a);   // x for x > 0, e^x - 1 below
Var gelu(const Var& a);  // exact: x·Φ(x)
Var tanh(const Var& a);
Var sigmoid(const Var& a);
Var softplus(const Var& a);  // log(1 + e^x), without overflow

// Masks.
// Sets elements to 0 with the given probability p and scales the others by 1/(1-p).
Var dropout(const Var& a, double probability, Rng& rng);
// Sets the rows j >= lengths[b] of a = [batch, heads, len, dim] to 0, even if they are NaN. Returns
// `a` if lengths is empty.
Var zero_padding(const Var& a, std::span<const int64_t> lengths);

// Products. a [.., m, k] (or [.., k, m] with transpose_a) times b [.., k, n] (or [.., n, k] with
// transpose_b) = [.., m, n]. The leading dimensions are batch dimensions and must agree. One
// operand may lack all of them or the first one; it is then broadcast.
Var matmul(const Var& a, const Var& b, bool transpose_a = false, bool transpose_b = false);
// x [.., in] · weight [in, out] + bias [out]; bias may be undefined.
Var linear(const Var& x, const Var& weight, const Var& bias);
// split_heads(linear(x, weight, {}), heads) without a copy: [batch, len, in] -> [batch, heads, len,
// out / heads].
Var linear_to_heads(const Var& x, const Var& weight, int64_t heads);
// linear(merge_heads(x), weight, {}) without a copy, plus residual [batch, len, out], if defined.
Var linear_from_heads(const Var& x, const Var& weight, const Var& residual = {});
// gelu(x · up + up_bias) · down + down_bias, plus residual, if defined; x [.., in], up [in,
// hidden], down [hidden, out]. The hidden rows stay in the cache; only x · up is stored for the
// backward.
struct FeedForwardWeights {
  Var up, up_bias, down, down_bias;
};
Var feed_forward(const Var& x, const FeedForwardWeights& weights, const Var& residual = {});

// Shape.
Var reshape(const Var& a, Shape shape);
Var slice(const Var& a, int dim, int64_t begin, int64_t end);  // [begin, end) along dim
Var concat(std::span<const Var> parts, int dim);
Var transpose_last(const Var& a);  // [.., m, n] -> [.., n, m]
// [batch, len, heads·dim] -> [batch, heads, len, dim], and the inverse.
Var split_heads(const Var& a, int64_t heads);
Var merge_heads(const Var& a);

// Reductions. sum_last and mean_last drop the last dimension.
Var sum(const Var& a);
Var mean(const Var& a);
Var sum_last(const Var& a);
Var mean_last(const Var& a);
// The mean over the positions j < lengths[b]: [batch, len, dim] -> [batch, dim]. A length of 0
// gives zeros. If lengths is empty, the mean is over all positions.
Var mean_positions(const Var& a, std::span<const int64_t> lengths);

// Multiplies row r of a = [.., n] by factors[r]; factors has the shape of `a` without the last
// dimension.
Var scale_rows(const Var& a, const Var& factors);
// The Euclidean (L2) norm of each row: [.., n] -> [.., 1]. The gradient of a row of zeros is 0.
Var row_norm(const Var& a);
// Softmax of each row. A row of -inf alone gives zeros, and zero gradients.
Var softmax(const Var& a);
// Layer normalisation of each row; gain and bias are [last dim].
Var layer_norm(const Var& a, const Var& gain, const Var& bias, double epsilon = 1e-5);
// Rows of table [vocab, dim] by id: [leading.., dim].
Var embedding(const Var& table, std::span<const int32_t> ids, Shape leading);

// Losses; the result is a single element. cross_entropy ignores targets of -1: it is the mean over
// the other rows, or 0 if there are none.
Var cross_entropy(const Var& logits, std::span<const int32_t> targets);  // logits [rows.., classes]
Var mean_squared_error(const Var& a, const Tensor& target);

}  // namespace attn
