// Near and far keys under one softmax; see strided_attention.h. The far part writes an output and
// log-sum-exp of its own, at most n·d numbers; the backward of each part runs with the joint ones.
#include "variants/kernels/strided_attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops.h"
#include "core/parallel.h"
#include "variants/kernels/block_lists.h"
#include "variants/kernels/regroup.h"
#include "variants/kernels/softmax_attention.h"
#include "variants/kernels/softmax_tiles.h"

namespace attn {
namespace {

// How the pattern is cut into a near and a far part that share no key.
struct Division {
  SoftmaxProblem near, far;
  Regroup queries, keys;  // of the far part
  bool same_queries;      // those of a fixed pattern stay where they are

  Division(const AttentionShape& s, const SparsePattern& pattern,
           const std::vector<int64_t>& kv_lengths)
      : same_queries(pattern.fixed) {
    near = {.batch = s.batch,
            .heads = s.heads,
            .q_len = s.kv_len,
            .kv_len = s.kv_len,
            .dim = s.head_dim,
            .value_dim = s.head_dim,
            .scale = 1 / std::sqrt(static_cast<double>(s.head_dim)),
            .causal = pattern.causal,
            .kv_lengths = kv_lengths};
    far = near;
    pattern.fixed ? cut_fixed(s.kv_len, pattern) : cut_strided(s.kv_len, pattern);
    far.batch = s.batch * s.heads * queries.groups;
    far.heads = 1;
    far.q_len = queries.rows;
    far.kv_len = keys.rows;
    far.kv_lengths.clear();
    for (int64_t b = 0; b < s.batch; ++b) {
      const std::vector<int64_t> sizes =
          keys.sizes(kv_lengths.empty() ? s.kv_len : kv_lengths[static_cast<size_t>(b)]);
      for (int64_t h = 0; h < s.heads; ++h)
        far.kv_lengths.insert(far.kv_lengths.end(), sizes.begin(), sizes.end());
    }
  }

  // Near: less than a stride away, but not the query's own position, which is in the column.
  void cut_strided(int64_t len, const SparsePattern& pattern) {
    near.left = near.right = pattern.stride - 1;
    near.hole = {.rows = 1, .keys = 1};
    queries = keys = residues(len, pattern.stride);
  }

  // Far: the summaries of all blocks but the query's own, causal: of those before it.
  void cut_fixed(int64_t len, const SparsePattern& pattern) {
    near.pattern =
        block_lists(len, pattern.stride, 1, [](int64_t, int64_t b) { return std::vector{b}; });
    std::vector<int64_t> far_keys;
    for (int64_t j = 0; j < len; ++j)
      if (pattern.summaries(j + 1) > pattern.summaries(j)) far_keys.push_back(j);
    far.causal = false;
    far.hole = {.rows = pattern.stride,
                .keys = pattern.summaries(pattern.stride),
                .after = !pattern.causal};
    queries = {.len = len, .groups = 1, .rows = len, .from = {}};
    keys = selection(len, std::move(far_keys));
  }

  Tensor take_queries(const Tensor& x, real empty = 0) const {
    if (!same_queries) return queries.take(x, empty);
    const int64_t heads = x.dim(0) * x.dim(1);
    return x.reshaped(x.shape().rank() == 4 ? Shape{heads, 1, x.dim(2), x.dim(3)}
                                            : Shape{heads, 1, x.dim(2)});
  }
};

// Of two log-sum-exps in units of log2, +inf for nothing seen: the joint one, and the factors that
// bring the outputs together.
struct Join {
  real log_sum = kInfinity, near = 0, far = 0;

  Join(real a, real b) {
    if (a == kInfinity && b == kInfinity) return;
    const real low = -kInfinity, x = a == kInfinity ? low : a, y = b == kInfinity ? low : b;
    const real top = y <= x ? x : y;
    const real u = std::exp2(x - top), w = std::exp2(y - top);
    log_sum = top + std::log2(u + w);
    near = u / (u + w);
    far = w / (u + w);
  }
};

void join(const Division& d, const Tensor& far_out, const Tensor& far_sum, const Tensor& out,
          const Tensor& log_sum) {
  const int64_t width = out.dim(3), rows = d.queries.rows, groups = d.queries.groups;
  parallel_for(far_sum.dim(0), 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      for (int64_t a = 0; a < rows; ++a) {
        const int64_t at =
            d.same_queries ? a : d.queries.from[static_cast<size_t>(group % groups * rows + a)];
        if (at < 0) continue;
        const int64_t row = group / groups * d.queries.len + at, other = group * rows + a;
        const Join joint(log_sum[row], far_sum[other]);
        const real* const from = far_out.data() + other * width;
        real* const to = out.data() + row * width;
        for (int64_t c = 0; c < width; ++c) to[c] = joint.near * to[c] + joint.far * from[c];
        log_sum[row] = joint.log_sum;
      }
  });
}

void add_far(const Division& d, const Tensor& q, const Tensor& k, const Tensor& v,
             const Tensor& out, const Tensor& log_sum) {
  const MemoryScope scope(Purpose::workspace);
  const Tensor fq = d.take_queries(q), fk = d.keys.take(k), fv = d.keys.take(v);
  const Tensor far_out(fq.shape()), far_sum({fq.dim(0), 1, fq.dim(2)});
  softmax_forward(d.far, fq, fk, fv, far_out, far_sum);
  join(d, far_out, far_sum, out, log_sum);
}

void far_backward(const Division& d, const Tensor& q, const Tensor& k, const Tensor& v,
                  const Tensor& out, const Tensor& log_sum, const Tensor& grad_out,
                  std::span<Tensor> grads) {
  const MemoryScope scope(Purpose::workspace);
  const Tensor fq = d.take_queries(q), fk = d.keys.take(k), fv = d.keys.take(v);
  const auto grad_like = [](const Tensor& wanted, const Tensor& x) {
    return wanted.defined() ? Tensor::zeros(x.shape()) : Tensor();
  };
  std::array<Tensor, 3> far_grads = {
      d.same_queries ? (grads[0].defined() ? d.take_queries(grads[0]) : Tensor())
                     : grad_like(grads[0], fq),
      grad_like(grads[1], fk), grad_like(grads[2], fv)};
  softmax_backward(d.far, fq, fk, fv, d.take_queries(out), d.take_queries(log_sum, kInfinity),
                   d.take_queries(grad_out), far_grads);
  if (grads[0].defined() && !d.same_queries) d.queries.add_back(far_grads[0], grads[0]);
  if (grads[1].defined()) d.keys.add_back(far_grads[1], grads[1]);
  if (grads[2].defined()) d.keys.add_back(far_grads[2], grads[2]);
}

AttentionShape shape_of(const Var& q) { return {q.dim(0), q.dim(1), q.dim(2), q.dim(2), q.dim(3)}; }

Var regrouped(const Var& x, const Regroup& groups) {
  return custom_op(groups.take(x.value()), {x}, [groups](const Tensor& grad, std::span<Tensor> g) {
    groups.add_back(grad, g[0]);
  });
}

Var put_back(const Var& x, const Regroup& groups, const Shape& shape) {
  const Tensor result = Tensor::zeros(shape);
  groups.add_back(x.value(), result);
  return custom_op(result, {x}, [groups](const Tensor& grad, std::span<Tensor> g) {
    g[0].add(groups.take(grad));
  });
}

Var grouped_entries(const Var& q, const Var& k, const Var& v, int64_t block, int64_t length) {
  const Regroup groups = residues(q.dim(2), length / block + 1);
  const std::vector<int64_t> sizes = groups.sizes(length);
  SoftmaxOptions options;
  for (int64_t i = 0; i < q.dim(0) * q.dim(1); ++i)
    options.kv_lengths.insert(options.kv_lengths.end(), sizes.begin(), sizes.end());
  return put_back(
      softmax_attention(regrouped(q, groups), regrouped(k, groups), regrouped(v, groups), options),
      groups, q.shape());
}

}  // namespace

Var sparse_attention(const Var& q, const Var& k, const Var& v, const SparsePattern& pattern,
                     const std::vector<int64_t>& kv_lengths) {
  const Division d(shape_of(q), pattern, kv_lengths);
  const Tensor qt = q.value(), kt = k.value(), vt = v.value();
  const Tensor out(qt.shape()), log_sum({qt.dim(0), qt.dim(1), qt.dim(2)});
  softmax_forward(d.near, qt, kt, vt, out, log_sum);
  add_far(d, qt, kt, vt, out, log_sum);
  return custom_op(out, {q, k, v},
                   [d, qt, kt, vt, out, log_sum](const Tensor& grad, std::span<Tensor> grads) {
                     softmax_backward(d.near, qt, kt, vt, out, log_sum, grad, grads);
                     far_backward(d, qt, kt, vt, out, log_sum, grad, grads);
                   });
}

Cost sparse_cost(const AttentionShape& shape, const SparsePattern& pattern) {
  const Division d(shape, pattern, {});
  const SoftmaxWork near = softmax_work(d.near), far = softmax_work(d.far);
  const double size = sizeof(real), heads = static_cast<double>(shape.batch * shape.heads),
               dim = static_cast<double>(shape.head_dim);
  const double rows = heads * static_cast<double>(shape.kv_len),
               far_rows = heads * static_cast<double>(d.queries.groups * d.queries.rows),
               far_keys = heads * static_cast<double>(d.keys.groups * d.keys.rows);
  const double gathered = (d.same_queries ? 1 : 2) * far_rows * dim + 2 * far_keys * dim + far_rows;
  Cost cost;
  cost.flops = near.flops + far.flops;
  cost.backward_flops = near.backward_flops + far.backward_flops;
  cost.bytes = size * (6 * rows * dim + 2 * gathered);
  cost.peak_bytes = size * (rows * dim + rows) +
                    std::max(near.workspace_bytes, size * gathered + far.workspace_bytes);
  return cost;
}

Var grouped_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                      const std::vector<int64_t>& kv_lengths) {
  if (kv_lengths.empty()) return grouped_entries(q, k, v, block, q.dim(2));
  std::vector<Var> entries;
  for (int64_t b = 0; b < q.dim(0); ++b)
    entries.push_back(grouped_entries(slice(q, 0, b, b + 1), slice(k, 0, b, b + 1),
                                      slice(v, 0, b, b + 1), block,
                                      kv_lengths[static_cast<size_t>(b)]));
  return concat(entries, 0);
}

Cost grouped_cost(const AttentionShape& shape, int64_t block) {
  const Regroup groups = residues(shape.kv_len, shape.kv_len / block + 1);
  SoftmaxProblem p{.batch = shape.batch * shape.heads * groups.groups,
                   .heads = 1,
                   .q_len = groups.rows,
                   .kv_len = groups.rows,
                   .dim = shape.head_dim,
                   .value_dim = shape.head_dim};
  const std::vector<int64_t> sizes = groups.sizes(shape.kv_len);
  for (int64_t i = 0; i < shape.batch * shape.heads; ++i)
    p.kv_lengths.insert(p.kv_lengths.end(), sizes.begin(), sizes.end());
  const SoftmaxWork work = softmax_work(p);
  const double width = sizeof(real) * static_cast<double>(shape.batch * shape.heads) *
                       static_cast<double>(shape.head_dim);
  const double rows = width * static_cast<double>(shape.kv_len),
               copies = width * static_cast<double>(groups.groups * groups.rows);
  return {.flops = work.flops,
          .backward_flops = work.backward_flops,
          .bytes = 4 * rows + 8 * copies,
          .peak_bytes = 4 * copies + std::max(work.workspace_bytes, rows)};
}

}  // namespace attn
