// Tiled softmax attention as an op: checks of the arguments. Forward and backward are in
// softmax_forward.cc and softmax_backward.cc.
#include "variants/softmax/softmax_attention.h"

#include <cmath>

#include "core/base/check.h"
#include "variants/softmax/softmax_backward.h"
#include "variants/softmax/softmax_forward.h"
#include "variants/softmax/softmax_op.h"

namespace attn {
namespace {

void check_pattern(const BlockPattern& pattern, int64_t batch, int64_t heads, int64_t q_len) {
  ATTN_CHECK(pattern.size >= 1, "a block pattern of blocks of {}", pattern.size);
  const int64_t blocks = (q_len + pattern.size - 1) / pattern.size;
  const auto lists = static_cast<int64_t>(pattern.begin.size()) - 1;
  ATTN_CHECK(lists == blocks || lists == heads * blocks || lists == batch * heads * blocks,
             "a block pattern of {} lists for {} blocks of queries in {} heads of {} entries",
             lists, blocks, heads, batch);
  const auto count = static_cast<int64_t>(pattern.keys.size());
  ATTN_CHECK(pattern.begin.front() == 0 && pattern.begin.back() == count,
             "the lists of a block pattern run from {} to {}, its keys from 0 to {}",
             pattern.begin.front(), pattern.begin.back(), count);
  for (size_t list = 0; list + 1 < pattern.begin.size(); ++list) {
    const int64_t begin = pattern.begin[list], end = pattern.begin[list + 1];
    ATTN_CHECK(begin <= end && end <= count, "list {} of a block pattern runs from {} to {}", list,
               begin, end);
    int64_t before = -1;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t key = pattern.keys[static_cast<size_t>(at)];
      ATTN_CHECK(key > before, "block {} follows block {} in list {} of a block pattern", key,
                 before, list);
      before = key;
    }
  }
}

}  // namespace

SoftmaxProblem softmax_problem(const Shape& q, const Shape& k, const Shape& v,
                               const SoftmaxOptions& options) {
  SoftmaxProblem p;
  p.batch = q[0], p.heads = q[1], p.q_len = q[2], p.dim = q[3];
  p.kv_len = k[2], p.value_dim = v[3];
  p.scale = options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(p.dim));
  p.left = options.before < 0 ? options.window : options.before;
  p.right = options.window;
  p.causal = options.causal;
  p.global = options.global;
  p.kv_lengths.assign(options.kv_lengths.begin(), options.kv_lengths.end());
  p.pattern = options.pattern;
  ATTN_CHECK(k == q.with(2, p.kv_len) && v == k.with(3, p.value_dim),
             "softmax attention: q {}, k {} and v {} do not fit", q.str(), k.str(), v.str());
  ATTN_CHECK(!p.pattern || p.global == 0, "{} global keys beside a block pattern", p.global);
  if (p.pattern) check_pattern(*p.pattern, p.batch, p.heads, p.q_len);
  return p;
}

Var softmax_op(const SoftmaxProblem& problem, const Var& q, const Var& k, const Var& v,
               const Var& bias_source) {
  const bool is_biased = bias_source.defined();
  const bool keep = recording({q, k, v}) || (is_biased && recording({bias_source}));
  const Tensor qt = q.value(), kt = k.value(), vt = v.value();
  const Tensor out(qt.shape().with(3, problem.value_dim));
  const Tensor log_sum = keep ? Tensor({problem.batch, problem.heads, problem.q_len}) : Tensor();
  softmax_forward(problem, qt, kt, vt, out, log_sum);
  if (!keep) return Var(out);
  const auto backward = [problem, qt, kt, vt, out, log_sum](const Tensor& grad_out,
                                                            std::span<Tensor> grads) {
    softmax_backward(problem, qt, kt, vt, out, log_sum, grad_out, grads);
  };
  return is_biased ? custom_op(out, {q, k, v, bias_source}, backward)
                   : custom_op(out, {q, k, v}, backward);
}

Var softmax_attention(const Var& q, const Var& k, const Var& v, const SoftmaxOptions& options) {
  return softmax_op(softmax_problem(q.shape(), k.shape(), v.shape(), options), q, k, v);
}

BFloat16Tensor softmax_attention(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                 const BFloat16Tensor& v, const SoftmaxOptions& options) {
  SoftmaxProblem problem = softmax_problem(q.shape(), k.shape(), v.shape(), options);
  problem.dtype = Dtype::bfloat16;
  BFloat16Tensor out(q.shape().with(3, problem.value_dim));
  softmax_forward(problem, q, k, v, out);
  return out;
}

}  // namespace attn
