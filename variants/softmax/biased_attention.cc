// See biased_attention.h: the ops, with checks of their arguments.
#include "variants/softmax/biased_attention.h"

#include <utility>

#include "core/base/check.h"
#include "variants/softmax/softmax_op.h"

namespace attn {
namespace {

Var biased(SoftmaxProblem problem, const Var& q, const Var& k, const Var& v, const Var& of,
           std::shared_ptr<const LogitBias> bias) {
  problem.bias = std::move(bias);
  return softmax_op(problem, q, k, v, of);
}

}  // namespace

Var gated_softmax_attention(const Var& q, const Var& k, const Var& v, const Var& log_gates,
                            const SoftmaxOptions& options) {
  ATTN_CHECK(options.causal, "forget gates need causal attention");
  ATTN_CHECK(log_gates.shape() == k.shape().with(3, 1), "log-gates {} of keys {}",
             log_gates.shape().str(), k.shape().str());
  return biased(softmax_problem(q.shape(), k.shape(), v.shape(), options), q, k, v, log_gates,
                LogitBias::of_gates(log_gates.value(), options.kv_lengths));
}

Var distance_softmax_attention(const Var& q, const Var& k, const Var& v, const Var& table,
                               const SoftmaxOptions& options) {
  const SoftmaxProblem problem = softmax_problem(q.shape(), k.shape(), v.shape(), options);
  const Shape wanted{problem.heads, problem.q_len + problem.kv_len - 1};
  ATTN_CHECK(table.shape() == wanted, "a table of distances {}; expected {}", table.shape().str(),
             wanted.str());
  return biased(problem, q, k, v, table, LogitBias::of_distances(table.value(), k.dim(2)));
}

}  // namespace attn
