// Losses. If the op is recorded, the forward also computes the gradient, and the backward only
// scales it.
#include <algorithm>
#include <cmath>

#include "core/autograd/tape.h"
#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// A mean whose gradient for an upstream gradient of 1 is known.
Var with_known_gradient(double value, const Var& a, const Tensor& gradient) {
  return record_op(Tensor::full({1}, static_cast<real>(value)), {&a, 1},
                   [gradient](const Tensor& g, std::span<GradSlot> in) {
                     const Tensor da(gradient.shape());
                     real* to = da.data();
                     const real* from = gradient.data();
                     const real factor = g[0];
                     const int64_t n = gradient.size();
                     ATTN_INDEPENDENT
                     for (int64_t i = 0; i < n; i++) to[i] = from[i] * factor;
                     in[0].give(da);
                   });
}

// -log softmax(x)[target]; gradient, unless null, gets its gradient times `weight`.
double row_loss(const real* x, int64_t n, int64_t target, real weight, real* gradient, real* work) {
  const real most = max_in_row(x, n);
  const real total = exp_row(n, x, 1, most, work);
  if (gradient) {
    const real factor = weight / total;
    for (int64_t j = 0; j < n; j++) gradient[j] = work[j] * factor;
    gradient[target] -= weight;
  }
  return std::log(static_cast<double>(total)) + static_cast<double>(most) -
         static_cast<double>(x[target]);
}

}  // namespace

Var cross_entropy(const Var& logits, std::span<const int32_t> targets) {
  const Tensor& x = logits.value();
  ATTN_CHECK(x.shape().rank() >= 1 && x.dim(-1) >= 1, "cross_entropy: logits {}", x.shape().str());
  const int64_t n = x.dim(-1), rows = x.size() / n;
  ATTN_CHECK(static_cast<int64_t>(targets.size()) == rows,
             "cross_entropy: {} targets for logits {}", targets.size(), x.shape().str());
  int64_t counted = 0;
  for (const int32_t target : targets) {
    ATTN_CHECK(target >= -1 && target < n, "cross_entropy: target {} of {} classes", target, n);
    counted += target >= 0;
  }
  const Tensor gradient = recording({&logits, 1}) ? Tensor(x.shape()) : Tensor();
  const real weight = real(1) / static_cast<real>(std::max<int64_t>(1, counted));
  const Tensor losses({rows});
  over_range(rows, 8 * n, [&](int64_t begin, int64_t end) {
    std::vector<real, Recycled<real>> work(static_cast<size_t>(n));
    for (int64_t row = begin; row < end; row++) {
      const int64_t target = targets[static_cast<size_t>(row)];
      real* down = gradient.defined() ? gradient.data() + row * n : nullptr;
      losses[row] = 0;
      if (target >= 0)
        losses[row] =
            static_cast<real>(row_loss(x.data() + row * n, n, target, weight, down, work.data()));
      else if (down)
        std::fill_n(down, n, real(0));
    }
  });
  double total = 0;
  for (int64_t row = 0; row < rows; row++) total += static_cast<double>(losses[row]);
  return with_known_gradient(total / static_cast<double>(std::max<int64_t>(1, counted)), logits,
                             gradient);
}

Var mean_squared_error(const Var& a, const Tensor& target) {
  const Tensor& x = a.value();
  ATTN_CHECK(x.shape() == target.shape() && x.size() > 0, "mean_squared_error: {} against {}",
             x.shape().str(), target.shape().str());
  const Tensor gradient = recording({&a, 1}) ? Tensor(x.shape()) : Tensor();
  const real factor = real(2) / static_cast<real>(x.size());
  double total = 0;
  for (int64_t i = 0; i < x.size(); i++) {
    const real difference = x[i] - target[i];
    total += static_cast<double>(difference) * static_cast<double>(difference);
    if (gradient.defined()) gradient[i] = factor * difference;
  }
  return with_known_gradient(total / static_cast<double>(x.size()), a, gradient);
}

}  // namespace attn
