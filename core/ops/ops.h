// Differentiable ops on Var. Shapes are written as [..]; "rows" are all dimensions but the last.
// Wrong shapes are Errors. Grouped as in the files: ops_elementwise.cc, ops_mask.cc, ops_matmul.cc,
// ops_linear.cc, ops_feed_forward.cc, ops_shape.cc, ops_reduce.cc, ops_norm.cc, ops_loss.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/var.h"
#include "core/base/rng.h"

namespace attn {

// FLOPs are counted for products alone (matmul, linear, feed_forward): what goes over its input
// once waits for memory, and counts as none.

// Elementwise. `b` may also be [last dim of a] (added to every row), a single element, for 4-D
// `a` = [b, h, m, n], [h, m, n] or [m, n], which is broadcast over leading dimensions, or [.., 1]
// for `a` = [.., n]: a number for each row, such as row_norm gives.
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

// Masks.
Var dropout(const Var& a, double probability,
            Rng& rng);  // kept values are scaled by 1/(1-p); p = 0 is the identity
// Rows j >= lengths[b] of a = [batch, heads, len, dim] become 0, whatever they held (NaN too);
// empty lengths: a itself.
Var zero_padding(const Var& a, std::span<const int64_t> lengths);

// Products. Batched over the leading dimensions, which must agree, or be absent (all or the first)
// in one of the two, which is then shared and its gradient summed: a [.., m, k] (or [.., k, m] with
// transpose_a) times b [.., k, n] (or [.., n, k] with transpose_b) = [.., m, n].
Var matmul(const Var& a, const Var& b, bool transpose_a = false, bool transpose_b = false);
Var linear(const Var& x, const Var& weight,
           const Var& bias);  // x [.., in] · weight [in, out] + bias [out] (may be undefined)
// split_heads(linear(x, weight, {}), heads) without the copy: [batch, len, in] -> [batch, heads,
// len, out / heads].
Var linear_to_heads(const Var& x, const Var& weight, int64_t heads);
// linear(merge_heads(x), weight, {}) without the copy, plus residual [batch, len, out] where given.
Var linear_from_heads(const Var& x, const Var& weight, const Var& residual = {});
// gelu(x · up + up_bias) · down + down_bias (+ residual, where given); x [.., in], up [in, hidden],
// down [hidden, out]. The hidden rows never leave the cache; only x · up is kept for the backward.
struct FeedForwardWeights {
  Var up, up_bias, down, down_bias;
};
Var feed_forward(const Var& x, const FeedForwardWeights& weights, const Var& residual = {});

// Shape.
Var reshape(const Var& a, Shape shape);
Var slice(const Var& a, int dim, int64_t begin, int64_t end);  // [begin, end) along dim
Var concat(std::span<const Var> parts, int dim);
Var transpose_last(const Var& a);  // [.., m, n] -> [.., n, m]
Var split_heads(const Var& a,
                int64_t heads);  // [batch, len, heads·dim] -> [batch, heads, len, dim]
Var merge_heads(const Var& a);   // [batch, heads, len, dim] -> [batch, len, heads·dim]

// Reductions. sum_last and mean_last drop the last dimension.
Var sum(const Var& a);
Var mean(const Var& a);
Var sum_last(const Var& a);
Var mean_last(const Var& a);
// Mean over positions j < lengths[b] of a = [batch, len, dim] -> [batch, dim]; a length of 0 gives
// 0; empty: all positions.
Var mean_positions(const Var& a, std::span<const int64_t> lengths);

// Row r of a = [.., n] times factors[r]; factors has the shape of `a` without its last dimension.
Var scale_rows(const Var& a, const Var& factors);
// The Euclidean (L2) norm of each row: [.., n] -> [.., 1]. A row of zeros gets no gradient.
Var row_norm(const Var& a);
// Rows to weights. A row whose every entry is -inf gives zeros, forward and backward.
Var softmax(const Var& a);
Var layer_norm(const Var& a, const Var& gain, const Var& bias,
               double epsilon = 1e-5);  // gain, bias [last dim]
Var embedding(const Var& table, std::span<const int32_t> ids,
              Shape leading);  // table [vocab, dim] -> leading + [dim]

// Losses, a single element. Targets of -1 are ignored: the mean is over the others, 0 when there is
// none.
Var cross_entropy(const Var& logits, std::span<const int32_t> targets);  // logits [rows.., classes]
Var mean_squared_error(const Var& a, const Tensor& target);

}  // namespace attn
