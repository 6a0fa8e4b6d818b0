// One softmax over near and distant keys; see strided_attention.h. The distant part computes its
// own output and log-sum-exp, which are merged with those of the near part; the backward of each
// part uses the merged ones. The groups of a strided pattern are gathered in cache-sized parts.
#include "variants/patterns/strided_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "variants/patterns/block_lists.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

// How the pattern is cut into a near and a far part that share no key.
struct NearAndFar {
  SoftmaxProblem near, far;  // far: of one group
  Regroup queries, keys;     // of the far part
  int64_t groups;            // of all heads
  IndexList sizes;           // [groups]: keys of each that are no padding
  bool same_queries;         // those of a fixed pattern stay where they are

  NearAndFar(const AttentionShape& s, const SparsePattern& pattern,
             const std::vector<int64_t>& kv_lengths)
      : same_queries(pattern.fixed) {
    near = {.batch = s.batch,
            .heads = s.heads,
            .q_len = s.kv_len,
            .kv_len = s.kv_len,
            .dim = s.head_dim,
            .value_dim = s.head_dim,
            .scale = 1 / std::sqrt(static_cast<double>(s.head_dim)),
            .causal = pattern.causal};
    far = near;
    near.kv_lengths.assign(kv_lengths.begin(), kv_lengths.end());
    pattern.fixed ? cut_fixed(s.kv_len, pattern) : cut_strided(s.kv_len, pattern);
    far.batch = far.heads = 1;
    far.q_len = queries.rows;
    far.kv_len = keys.rows;
    groups = s.batch * s.heads * queries.groups;
    for (int64_t head = 0; head < s.batch * s.heads; ++head)
      keys.append_sizes(
          kv_lengths.empty() ? s.kv_len : kv_lengths[static_cast<size_t>(head / s.heads)], sizes);
  }

  // Near: less than a stride away, but not the query's own position, which is in the column.
  void cut_strided(int64_t len, const SparsePattern& pattern) {
    near.left = near.right = pattern.stride - 1;
    near.removed = {.rows = 1, .keys = 1};
    queries = keys = residues(len, pattern.stride);
  }

  // Far: the summaries of all blocks but the query's own, causal: of those before it.
  void cut_fixed(int64_t len, const SparsePattern& pattern) {
    near.pattern = block_lists(len, pattern.stride, 1,
                               [](int64_t, int64_t b, IndexList& list) { list.push_back(b); });
    IndexList far_keys;
    for (int64_t j = 0; j < len; ++j)
      if (pattern.summaries(j + 1) > pattern.summaries(j)) far_keys.push_back(j);
    far.causal = false;
    far.removed = {.rows = pattern.stride,
                   .keys = pattern.summaries(pattern.stride),
                   .seen_after = !pattern.causal};
    queries = {.len = len, .groups = 1, .rows = len, .from = {}};
    keys = selection(len, std::move(far_keys));
  }

  // Groups at a time; queries in place are not cut.
  int64_t chunk(int64_t arrays) const {
    return same_queries ? groups : queries.chunk(arrays, near.dim);
  }

  SoftmaxProblem far_part(Span which) const {
    SoftmaxProblem part = far;
    part.batch = which.end - which.begin;
    part.kv_lengths.assign(sizes.begin() + which.begin, sizes.begin() + which.end);
    return part;
  }

  Tensor gather_queries(const Tensor& x, Span which, real empty = 0) const {
    if (!same_queries) return queries.gather(x, which, empty);
    const int64_t heads = x.dim(0) * x.dim(1);
    return x.reshaped(x.shape().rank() == 4 ? Shape{heads, 1, x.dim(2), x.dim(3)}
                                            : Shape{heads, 1, x.dim(2)});
  }
};

void join(const NearAndFar& d, Span which, const Tensor& far_out, const Tensor& far_sum,
          const Tensor& out, const Tensor& log_sum) {
  const Mark mark(Part::softmax);
  const int64_t width = out.dim(3), rows = d.queries.rows, groups = d.queries.groups;
  parallel_for(which.end - which.begin, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g)
      for (int64_t a = 0; a < rows; ++a) {
        const int64_t group = which.begin + g;
        const int64_t at =
            d.same_queries ? a : d.queries.from[static_cast<size_t>(group % groups * rows + a)];
        if (at < 0) continue;
        const int64_t row = group / groups * d.queries.len + at, other = g * rows + a;
        const Join joint(log_sum[row], far_sum[other]);
        const real* const from = far_out.data() + other * width;
        real* const to = out.data() + row * width;
        for (int64_t c = 0; c < width; ++c) to[c] = joint.near * to[c] + joint.far * from[c];
        log_sum[row] = joint.log_sum;
      }
  });
}

void add_far(const NearAndFar& d, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& out, const Tensor& log_sum) {
  const MemoryScope scope(Purpose::workspace);
  in_chunks({0, d.groups}, d.chunk(kForwardArrays), [&](Span which) {
    const Tensor fq = d.gather_queries(q, which), fk = d.keys.gather(k, which),
                 fv = d.keys.gather(v, which);
    const Tensor far_out(fq.shape()), far_sum({fq.dim(0), 1, fq.dim(2)});
    softmax_forward(d.far_part(which), fq, fk, fv, far_out, far_sum);
    join(d, which, far_out, far_sum, out, log_sum);
  });
}

void far_backward(const NearAndFar& d, const Tensor& q, const Tensor& k, const Tensor& v,
                  const Tensor& out, const Tensor& log_sum, const Tensor& grad_out,
                  std::span<Tensor> grads) {
  const MemoryScope scope(Purpose::workspace);
  const auto grad_like = [](const Tensor& wanted, const Tensor& x) {
    return wanted.defined() ? Tensor::zeros(x.shape()) : Tensor();
  };
  in_chunks({0, d.groups}, d.chunk(kBackwardArrays), [&](Span which) {
    const Tensor fq = d.gather_queries(q, which), fk = d.keys.gather(k, which),
                 fv = d.keys.gather(v, which);
    std::array<Tensor, 3> far_grads = {d.same_queries && grads[0].defined()
                                           ? d.gather_queries(grads[0], which)
                                           : grad_like(grads[0], fq),
                                       grad_like(grads[1], fk), grad_like(grads[2], fv)};
    softmax_backward(d.far_part(which), fq, fk, fv, d.gather_queries(out, which),
                     d.gather_queries(log_sum, which, kInfinity), d.gather_queries(grad_out, which),
                     far_grads);
    if (grads[0].defined() && !d.same_queries) d.queries.scatter_add(far_grads[0], which, grads[0]);
    if (grads[1].defined()) d.keys.scatter_add(far_grads[1], which, grads[1]);
    if (grads[2].defined()) d.keys.scatter_add(far_grads[2], which, grads[2]);
  });
}

AttentionShape shape_of(const Var& q) { return {q.dim(0), q.dim(1), q.dim(2), q.dim(2), q.dim(3)}; }

}  // namespace

Var sparse_attention(const Var& q, const Var& k, const Var& v, const SparsePattern& pattern,
                     const std::vector<int64_t>& kv_lengths) {
  const auto d = std::allocate_shared<const NearAndFar>(Recycled<NearAndFar>(), shape_of(q),
                                                        pattern, kv_lengths);
  const Tensor qt = q.value(), kt = k.value(), vt = v.value();
  const Tensor out(qt.shape()), log_sum({qt.dim(0), qt.dim(1), qt.dim(2)});
  softmax_forward(d->near, qt, kt, vt, out, log_sum);
  add_far(*d, qt, kt, vt, out, log_sum);
  return custom_op(out, {q, k, v},
                   [d, qt, kt, vt, out, log_sum](const Tensor& grad, std::span<Tensor> grads) {
                     softmax_backward(d->near, qt, kt, vt, out, log_sum, grad, grads);
                     far_backward(*d, qt, kt, vt, out, log_sum, grad, grads);
                   });
}

Cost sparse_cost(const AttentionShape& shape, const SparsePattern& pattern) {
  const NearAndFar d(shape, pattern, {});
  const int64_t chunk = std::min(d.chunk(kForwardArrays), d.groups);
  const SoftmaxWork near = softmax_work(d.near), far = softmax_work(d.far_part({0, d.groups})),
                    some = softmax_work(d.far_part({0, chunk}));
  const double size = sizeof(real), heads = static_cast<double>(shape.batch * shape.heads),
               dim = static_cast<double>(shape.head_dim);
  const double rows = heads * static_cast<double>(shape.kv_len);
  const double queries = static_cast<double>(chunk * d.queries.rows),
               keys = static_cast<double>(chunk * d.keys.rows);
  const double gathered = (d.same_queries ? 1 : 2) * queries * dim + 2 * keys * dim + queries;
  // Both parts read q, k and v; the near one writes the output, the far one changes it.
  return {.flops = near.flops + far.flops,
          .backward_flops = near.backward_flops + far.backward_flops,
          .bytes = size * 9 * rows * dim,
          .peak_bytes = size * (rows * dim + rows) +
                        std::max(near.workspace_bytes, size * gathered + some.workspace_bytes),
          .state_bytes = size * 2 * heads * dim *
                         static_cast<double>(sparse_cache(pattern, shape.kv_len).slots)};
}

}  // namespace attn
