// The share of a row beside a sink, and its gradients; see sink.h. Parallel over batch × heads; the
// gradient of a sink sums over its rows in double.
#include "variants/normalisers/sink.h"

#include <cmath>

#include "core/base/check.h"
#include "core/simd/rows.h"

namespace attn {

Var share_beside_sink(const Var& log_sum, const Var& sinks) {
  ATTN_CHECK(log_sum.shape().rank() == 3 && sinks.shape() == Shape{log_sum.dim(1)},
             "sinks {} do not fit the log-sum-exps {}; expected one for each head",
             sinks.shape().str(), log_sum.shape().str());
  const int64_t heads = log_sum.dim(1), len = log_sum.dim(2), all = log_sum.dim(0) * heads;
  const Tensor rows = log_sum.value(), sink = sinks.value(), share(rows.shape());
  // By the exponential, whose error is relative: a small share keeps its digits.
  over_range(all, 8 * len, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * len; i < end * len; ++i)
      share[i] = 1 / (1 + std::exp(sink[i / len % heads] - rows[i]));
  });
  return custom_op(share, {log_sum, sinks}, [=](const Tensor& g, std::span<Tensor> grads) {
    over_range(heads, all / heads * len, [&](int64_t begin, int64_t end) {
      for (int64_t h = begin; h < end; ++h) {
        double sum = 0;
        for (int64_t at = h; at < all; at += heads)
          for (int64_t i = at * len; i < (at + 1) * len; ++i) {
            const real slope = g[i] * share[i] * (1 - share[i]);
            if (grads[0].defined()) grads[0][i] += slope;
            sum += static_cast<double>(slope);
          }
        if (grads[1].defined()) grads[1][h] -= static_cast<real>(sum);
      }
    });
  });
}

}  // namespace attn
