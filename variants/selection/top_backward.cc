// Backward of attention along the keys that the forward kept: 8·d FLOPs a kept key. A task a head,
// which adds to the keys of that head alone.
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/listed_rows.h"
#include "core/simd/row_ops.h"
#include "variants/selection/top_problem.h"

namespace attn {

void top_backward(const TopProblem& p, const KeptKeys& kept, const Tensor& grad,
                  std::span<Tensor> grads, const Tensor& grad_log_sum) {
  const Mark mark(Part::edges);
  const int64_t d = p.dim(), n = p.q_len();
  const auto row_of = [d](const Tensor& t, int64_t row) {
    return t.defined() ? t.data() + row * d : nullptr;
  };
  run_tasks(p.heads(), kept.most, [&](int64_t head, real* grad_logits) {
    const int64_t keys = head * p.kv_len();
    int64_t pairs = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = head * n + i, count = std::min(kept.most, p.visible(head, i));
      const ListedRows rows{count, d, kept.places(row)};
      const real* const weights = kept.of_query(row);
      dots_and_add(rows, grad.data() + row * d, p.v.data() + keys * d, weights, grad_logits,
                   row_of(grads[2], keys));
      const real mean = row_dot(weights, grad_logits, count) -
                        (grad_log_sum.defined() ? grad_log_sum[row] : real(0));
      for (int64_t e = 0; e < count; ++e)
        grad_logits[e] = weights[e] * (grad_logits[e] - mean) * p.scale();
      sum_and_add(rows, p.q.data() + row * d, p.k.data() + keys * d, grad_logits,
                  row_of(grads[0], row), row_of(grads[1], keys));
      pairs += count;
    }
    const int products = 1 + grads[0].defined() + grads[1].defined() + grads[2].defined();
    count_flops(2 * static_cast<double>(pairs * d * products));
  });
}

}  // namespace attn
