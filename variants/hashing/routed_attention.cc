// Attention inside clusters; see routed_attention.h. The groups are gathered for the tiled kernel,
// some at a time. Clusters of one head may share positions: their results are added head by head.
#include "variants/hashing/routed_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "variants/hashing/routes.h"
#include "variants/hashing/row_sums.h"

namespace attn {
namespace {

SoftmaxProblem group_problem(const Tensor& x, const Routes& keys, Span which, bool causal) {
  return {.batch = which.end - which.begin,
          .heads = 1,
          .q_len = keys.regroup.rows,
          .kv_len = keys.regroup.rows,
          .dim = x.dim(3),
          .value_dim = x.dim(3),
          .scale = 1 / std::sqrt(static_cast<double>(x.dim(3))),
          .causal = causal,
          .kv_lengths = {keys.sizes.begin() + which.begin, keys.sizes.begin() + which.end}};
}

Tensor zeros_for(const Tensor& wanted, const Tensor& like) {
  return wanted.defined() ? Tensor::zeros(like.shape()) : Tensor();
}

// The groups `which` of x [groups, ...], in place: valid as long as x is.
Tensor groups_of(const Tensor& x, Span which) {
  real* const first = x.data() + which.begin * (x.size() / x.dim(0));
  return Tensor::over(x.shape().with(0, which.end - which.begin), first,
                      std::shared_ptr<const void>(std::shared_ptr<const void>(), first));
}

struct Balanced {
  Tensor q, k, v;
  Routes queries, keys;
  Tensor shares;        // [batch, heads, len]: 1 / clusters that chose the query
  Tensor out, log_sum;  // of the groups: [groups, 1, rows, dim], [groups, 1, rows]

  Balanced(const Tensor& q_, const Tensor& k_, const Tensor& v_, const Tensor& centroids,
           int64_t window, const std::vector<int64_t>& lengths)
      : q(q_),
        k(k_),
        v(v_),
        queries(balanced_routes(q, centroids, window, lengths)),
        keys(balanced_routes(k, centroids, window, lengths)),
        shares(Tensor::zeros({q.dim(0), q.dim(1), q.dim(2)})),
        out({queries.regroup.groups, 1, queries.regroup.rows, q.dim(3)}),
        log_sum({queries.regroup.groups, 1, queries.regroup.rows}) {
    for (const int64_t at : queries.regroup.from)
      if (at >= 0) shares[at] += 1;
    for (real& share : shares.values()) share = share > 0 ? 1 / share : real(0);
  }

  Span all() const { return {0, queries.regroup.groups}; }
  int64_t chunk(int64_t arrays) const { return queries.regroup.chunk(arrays, q.dim(3)); }

  // Adds the rows of some groups, which may share positions of a head, to `to`.
  void add(const Routes& routes, Span which, const Tensor& rows, const Tensor& to,
           bool shared) const {
    const Mark mark(Part::gathering);
    const int64_t each = routes.regroup.groups / (q.dim(0) * q.dim(1)), width = q.dim(3);
    const int64_t first = which.begin / each, heads = (which.end + each - 1) / each - first;
    parallel_for(heads, 1, [&](int64_t begin, int64_t end) {
      const int64_t from = std::max(which.begin, (first + begin) * each),
                    last = std::min(which.end, (first + end) * each);
      for (int64_t row = from * routes.regroup.rows; row < last * routes.regroup.rows; ++row) {
        const int64_t at = routes.regroup.from[static_cast<size_t>(row)];
        if (at < 0) continue;
        const real share = shared ? shares[at] : real(1);
        add_row(to.data() + at * width, share,
                rows.data() + (row - which.begin * routes.regroup.rows) * width, width);
      }
    });
  }

  void forward(const Tensor& result) const {
    in_chunks(all(), chunk(kForwardArrays), [&](Span which) {
      const Tensor answer = groups_of(out, which);
      softmax_forward(group_problem(q, keys, which, false), queries.regroup.gather(q, which),
                      keys.regroup.gather(k, which), keys.regroup.gather(v, which), answer,
                      groups_of(log_sum, which));
      add(queries, which, answer, result, true);
    });
  }

  void backward(const Tensor& grad, std::span<Tensor> grads) const {
    in_chunks(all(), chunk(kBackwardArrays), [&](Span which) {
      const Tensor gq = queries.regroup.gather(q, which);
      const Tensor of_out = queries.regroup.gather(grad, which),
                   share = queries.regroup.gather(shares, which);
      for (int64_t row = 0; row < share.size(); ++row)
        scale_rows_to(of_out.data() + row * q.dim(3), q.dim(3), share[row],
                      of_out.data() + row * q.dim(3));
      std::array<Tensor, 3> own = {zeros_for(grads[0], gq), zeros_for(grads[1], gq),
                                   zeros_for(grads[2], gq)};
      softmax_backward(group_problem(q, keys, which, false), gq, keys.regroup.gather(k, which),
                       keys.regroup.gather(v, which), groups_of(out, which),
                       groups_of(log_sum, which), of_out, own);
      if (grads[0].defined()) add(queries, which, own[0], grads[0], false);
      if (grads[1].defined()) add(keys, which, own[1], grads[1], false);
      if (grads[2].defined()) add(keys, which, own[2], grads[2], false);
    });
  }
};

struct Nearest {
  Tensor x, v, out, log_sum;  // [batch, heads, len, dim], the last one [batch, heads, len]
  NearestRoutes routes;
  bool causal;

  Span own() const { return {0, routes.chunks.regroup.groups}; }
  Span pairs() const { return {0, routes.after.regroup.groups}; }
  int64_t chunk(int64_t arrays) const { return routes.chunks.regroup.chunk(arrays, x.dim(3)); }

  void forward_part(const Routes& queries, const Routes& keys, Span all, bool causal_part) const {
    in_chunks(all, chunk(kForwardArrays), [&](Span which) {
      const Tensor gq = queries.regroup.gather(x, which), more(gq.shape()),
                   sum({gq.dim(0), 1, gq.dim(2)});
      softmax_forward(group_problem(x, keys, which, causal_part), gq, keys.regroup.gather(x, which),
                      keys.regroup.gather(v, which), more, sum);
      join_rows(queries.regroup, which, more, sum, 0, out, log_sum);
    });
  }
  void forward() const {
    out.fill(0);
    log_sum.fill(kInfinity);  // nothing seen
    if (own().end > 0) forward_part(routes.chunks, routes.chunks, own(), causal);
    if (pairs().end > 0) forward_part(routes.after, routes.before, pairs(), false);
  }

  void backward_part(const Routes& queries, const Routes& keys, Span all, bool causal_part,
                     const Tensor& grad, std::span<Tensor> grads) const {
    in_chunks(all, chunk(kBackwardArrays), [&](Span which) {
      const Tensor gq = queries.regroup.gather(x, which);
      std::array<Tensor, 3> parts = {zeros_for(grads[0], gq), zeros_for(grads[0], gq),
                                     zeros_for(grads[1], gq)};
      softmax_backward(group_problem(x, keys, which, causal_part), gq,
                       keys.regroup.gather(x, which), keys.regroup.gather(v, which),
                       queries.regroup.gather(out, which),
                       queries.regroup.gather(log_sum, which, kInfinity),
                       queries.regroup.gather(grad, which), parts);
      if (grads[0].defined()) {
        queries.regroup.scatter_add(parts[0], which, grads[0]);
        keys.regroup.scatter_add(parts[1], which, grads[0]);
      }
      if (grads[1].defined()) keys.regroup.scatter_add(parts[2], which, grads[1]);
    });
  }
};

}  // namespace

Var balanced_attention(const Var& q, const Var& k, const Var& v, const Tensor& centroids,
                       int64_t window, const Mask& mask) {
  const auto p = std::allocate_shared<Balanced>(Recycled<Balanced>(), q.value(), k.value(),
                                                v.value(), centroids, window, mask.kv_lengths);
  const Tensor out = Tensor::zeros(q.shape());
  {
    const MemoryScope scope(Purpose::workspace);
    p->forward(out);
  }
  return custom_op(out, {q, k, v}, [p](const Tensor& grad, std::span<Tensor> grads) {
    const MemoryScope scope(Purpose::workspace);
    p->backward(grad, grads);
  });
}

Var nearest_attention(const Var& x, const Var& v, const Tensor& centroids, int64_t window,
                      const Mask& mask) {
  const auto p = std::allocate_shared<Nearest>(
      Recycled<Nearest>(),
      Nearest{x.value(), v.value(), Tensor(x.shape()), Tensor({x.dim(0), x.dim(1), x.dim(2)}),
              nearest_routes(x.value(), centroids, window, mask.kv_lengths), mask.causal});
  {
    const MemoryScope scope(Purpose::workspace);
    p->forward();
  }
  return custom_op(p->out, {x, v}, [p](const Tensor& grad, std::span<Tensor> grads) {
    const MemoryScope scope(Purpose::workspace);
    const NearestRoutes& r = p->routes;
    if (p->own().end > 0) p->backward_part(r.chunks, r.chunks, p->own(), p->causal, grad, grads);
    if (p->pairs().end > 0) p->backward_part(r.after, r.before, p->pairs(), false, grad, grads);
  });
}

Cost balanced_cost(const AttentionShape& s, int64_t clusters, int64_t window) {
  const int64_t n = s.kv_len, heads = s.batch * s.heads, d = s.head_dim;
  const int64_t rows = std::min(n, window > 0 ? window : (n + clusters - 1) / clusters);
  SoftmaxProblem group{.batch = heads * clusters,
                       .heads = 1,
                       .q_len = rows,
                       .kv_len = rows,
                       .dim = d,
                       .value_dim = d};
  const SoftmaxWork work = softmax_work(group);
  const Regroup regroup{.len = n, .groups = heads * clusters, .rows = rows, .from = {}};
  const int64_t chunk = std::min(regroup.chunk(kForwardArrays, d), regroup.groups);
  group.batch = chunk;
  const auto of = [](int64_t x) { return static_cast<double>(x); };
  const double size = sizeof(real), whole = of(heads * n), grouped = of(heads * clusters * rows);
  return {.flops = work.flops + 4 * whole * of(clusters * d),
          .backward_flops = work.backward_flops,
          .bytes = size * (4 * whole + 4 * grouped) * of(d),
          // Queries and keys at length √d, the result, and what the backward reads.
          .peak_bytes = size * (3 * whole * of(d) + whole + grouped * of(d + 1) +
                                of(chunk * rows) * of(3 * d)) +
                        softmax_work(group).workspace_bytes};
}

}  // namespace attn
