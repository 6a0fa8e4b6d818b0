// The two results are two ops: the log-sum-exp hands its gradient to the op of the output, whose
// backward comes after its own; see softmax_log_sum.h.
#include "variants/softmax/softmax_log_sum.h"

#include <cmath>
#include <memory>
#include <numbers>

#include "core/base/recycled.h"
#include "variants/softmax/softmax_backward.h"
#include "variants/softmax/softmax_forward.h"
#include "variants/softmax/softmax_op.h"

namespace attn {
namespace {

// Natural logarithms of what softmax_forward() leaves, in units of log2 and +infinity without keys.
Tensor natural(const Tensor& log_sum) {
  const Tensor result(log_sum.shape());
  for (int64_t i = 0; i < log_sum.size(); ++i)
    result[i] = std::isinf(log_sum[i]) && log_sum[i] > 0
                    ? -kInfinity
                    : log_sum[i] * static_cast<real>(std::numbers::ln2);
  return result;
}

}  // namespace

Var handed_log_sum(const Tensor& log_sum, const Var& out, const std::shared_ptr<Tensor>& gradient) {
  // `out` is an input for the order alone: zeros are added to its gradient.
  return custom_op(log_sum, {out},
                   [gradient](const Tensor& given, std::span<Tensor>) { *gradient = given; });
}

SoftmaxResult softmax_with_log_sum(const Var& q, const Var& k, const Var& v,
                                   const SoftmaxOptions& options) {
  return softmax_with_log_sum(softmax_problem(q.shape(), k.shape(), v.shape(), options), q, k, v);
}

SoftmaxResult softmax_with_log_sum(const SoftmaxProblem& problem, const Var& q, const Var& k,
                                   const Var& v) {
  const Tensor qt = q.value(), kt = k.value(), vt = v.value();
  const Tensor answer(qt.shape().with(3, problem.value_dim));
  const Tensor log_sum({problem.batch, problem.heads, problem.q_len});
  softmax_forward(problem, qt, kt, vt, answer, log_sum);
  // Undefined: the log-sum-exp is unused.
  const auto grad_log_sum = std::allocate_shared<Tensor>(Recycled<Tensor>());
  const Var out =
      custom_op(answer, {q, k, v}, [=](const Tensor& grad_out, std::span<Tensor> grads) {
        softmax_backward(problem, qt, kt, vt, answer, log_sum, grad_out, grads, *grad_log_sum);
      });
  return {out, handed_log_sum(natural(log_sum), out, grad_log_sum)};
}

}  // namespace attn
