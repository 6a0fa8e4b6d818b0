// Attention within groups of positions a stride apart; see grouped_attention.h. Groups are gathered
// in parts, so that their copies stay in the second-level cache.
#include "variants/softmax/grouped_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "variants/softmax/grouped_backward.h"
#include "variants/softmax/regroup.h"
#include "variants/softmax/softmax_cost.h"
#include "variants/softmax/softmax_forward.h"

namespace attn {
namespace {

// The groups of batch entries of equal length.
struct Grouping {
  Regroup regroup;
  Span groups;           // those of these entries, out of all heads
  IndexList sizes;       // [groups of a head]: valid keys of each
  SoftmaxProblem group;  // the problem of one group

  Grouping(const Shape& q, Span entries, int64_t stride, int64_t length)
      : regroup(residues(q[2], stride)) {
    const int64_t each = q[1] * regroup.groups;
    groups = {entries.begin * each, entries.end * each};
    regroup.append_sizes(length, sizes);
    group = {.batch = 1,
             .heads = 1,
             .q_len = regroup.rows,
             .kv_len = regroup.rows,
             .dim = q[3],
             .value_dim = q[3],
             .scale = 1 / std::sqrt(static_cast<double>(q[3]))};
  }

  int64_t chunk(int64_t arrays) const { return regroup.chunk(arrays, group.dim); }

  SoftmaxProblem problem(Span which) const {
    SoftmaxProblem p = group;
    p.batch = which.end - which.begin;
    for (int64_t g = which.begin; g < which.end; ++g)
      p.kv_lengths.push_back(sizes[static_cast<size_t>(g % regroup.groups)]);
    return p;
  }

  void forward(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
               const Tensor& log_sum) const {
    in_chunks(groups, chunk(kForwardArrays), [&](Span which) {
      const Tensor gq = regroup.gather(q, which), gk = regroup.gather(k, which),
                   gv = regroup.gather(v, which), answer(gq.shape()),
                   sum({gq.dim(0), 1, gq.dim(2)});
      softmax_forward(problem(which), gq, gk, gv, answer, sum);
      regroup.scatter(answer, which, out);
      regroup.scatter(sum, which, log_sum);
    });
  }

  void backward(const std::array<Tensor, 5>& saved, const Tensor& grad_out,
                std::span<Tensor> grads) const {
    grouped_backward(
        regroup, groups, [&](Span which) { return problem(which); }, saved, grad_out, grads);
  }
};

int64_t stride_of(int64_t length, int64_t block, bool extra_group) {
  return std::max<int64_t>(1, extra_group ? length / block + 1 : (length + block - 1) / block);
}

using Groupings = std::vector<Grouping, Recycled<Grouping>>;

}  // namespace

Var grouped_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                      const std::vector<int64_t>& kv_lengths, bool extra_group) {
  const auto all = std::allocate_shared<Groupings>(Recycled<Groupings>());
  const auto add = [&](Span entries, int64_t length) {
    all->emplace_back(q.shape(), entries, stride_of(length, block, extra_group), length);
  };
  if (kv_lengths.empty()) add({0, q.dim(0)}, q.dim(2));
  for (int64_t b = 0; b < std::ssize(kv_lengths); ++b)
    add({b, b + 1}, kv_lengths[static_cast<size_t>(b)]);
  const Tensor out(q.shape()), log_sum({q.dim(0), q.dim(1), q.dim(2)});
  const std::array<Tensor, 5> saved = {q.value(), k.value(), v.value(), out, log_sum};
  {
    const MemoryScope scope(Purpose::workspace);
    for (const Grouping& some : *all) some.forward(saved[0], saved[1], saved[2], out, log_sum);
  }
  return custom_op(out, {q, k, v}, [all, saved](const Tensor& grad, std::span<Tensor> grads) {
    const MemoryScope scope(Purpose::workspace);
    for (const Grouping& some : *all) some.backward(saved, grad, grads);
  });
}

Cost grouped_cost(const AttentionShape& s, int64_t block, bool extra_group) {
  const Grouping all({s.batch, s.heads, s.kv_len, s.head_dim}, {0, s.batch},
                     stride_of(s.kv_len, block, extra_group), s.kv_len);
  const int64_t chunk = std::min(all.chunk(kForwardArrays), all.groups.end);
  const SoftmaxWork work = softmax_work(all.problem(all.groups));
  const double size = sizeof(real), dim = static_cast<double>(s.head_dim),
               rows = static_cast<double>(s.batch * s.heads * s.kv_len),
               gathered = static_cast<double>(chunk * all.regroup.rows);
  return {.flops = work.flops,
          .backward_flops = work.backward_flops,
          .bytes = size * 4 * rows * dim,
          .peak_bytes = size * (rows * (dim + 1) + gathered * (4 * dim + 1)) +
                        softmax_work(all.problem({0, chunk})).workspace_bytes};
}

}  // namespace attn
