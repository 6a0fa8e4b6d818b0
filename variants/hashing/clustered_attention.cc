// Forward, backward and cost of clustered attention; see clustered_attention.h. Mean queries go
// through the tiled kernel of softmax attention; top keys are those of top_keys.h.
#include "variants/hashing/clustered_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
#include "variants/hashing/row_sums.h"
#include "variants/hashing/top_keys.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

struct Problem {
  Tensor q, k, v;
  ClusterOptions options;
  QueryClusters clusters;
  SoftmaxProblem centroids;
  Tensor means, out, log_sum;  // [batch, heads, clusters, dim], the same, [batch, heads, clusters]
  Tensor top_weights;          // [batch, heads, clusters, keys]
  Block top;                   // of the same shape

  Problem(const Var& q_, const Var& k_, const Var& v_, const Tensor& planes,
          const ClusterOptions& chosen, const std::vector<int64_t>& kv_lengths)
      : q(q_.value()),
        k(k_.value()),
        v(v_.value()),
        options(chosen),
        clusters(q, planes, chosen.clusters, chosen.iterations, kv_lengths),
        means({q.dim(0), q.dim(1), clusters.clusters(), q.dim(3)}),
        out(means.shape()),
        log_sum({q.dim(0), q.dim(1), clusters.clusters()}) {
    centroids = {.batch = q.dim(0),
                 .heads = q.dim(1),
                 .q_len = clusters.clusters(),
                 .kv_len = k.dim(2),
                 .dim = q.dim(3),
                 .value_dim = q.dim(3),
                 .scale = 1 / std::sqrt(static_cast<double>(q.dim(3)))};
    centroids.kv_lengths.assign(kv_lengths.begin(), kv_lengths.end());
    options.keys = std::min(options.keys, k.dim(2));
    if (options.keys == 0) return;
    top_weights = Tensor({q.dim(0), q.dim(1), clusters.clusters(), options.keys});
    top = Block(static_cast<size_t>(top_weights.size()) * sizeof(int32_t), MemoryScope::current());
  }

  int64_t heads() const { return q.dim(0) * q.dim(1); }
  int64_t valid(int64_t head) const {
    return centroids.kv_lengths.empty()
               ? q.dim(2)
               : centroids.kv_lengths[static_cast<size_t>(head / q.dim(1))];
  }

  TopKeysHead top_head(int64_t head) const {
    const int64_t d = q.dim(3), count = clusters.clusters(), at = head * count * options.keys;
    return {.valid = valid(head),
            .dim = d,
            .clusters = count,
            .keys = std::min(options.keys, valid(head)),
            .row = options.keys,
            .scale = static_cast<real>(centroids.scale),
            .q = q.data() + head * q.dim(2) * d,
            .k = k.data() + head * q.dim(2) * d,
            .v = v.data() + head * q.dim(2) * d,
            .means = means.data() + head * count * d,
            .out = out.data() + head * count * d,
            .log_sum = log_sum.data() + head * count,
            .top = static_cast<int32_t*>(top.data()) + at,
            .weights = top_weights.data() + at};
  }
};

// body(first number of a cluster's row, numbers of its members' rows): of all heads
template <class Body>
void for_clusters(const Problem& p, const Body& body) {
  const Mark mark(Part::gathering);
  const int64_t count = p.clusters.clusters(), d = p.q.dim(3);
  over_range(p.heads() * count, p.q.dim(2) / count * d, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t head = row / count;
      const Span members = p.clusters.members(head, row % count);
      body(row * d, p.clusters.order(head) + members.begin, members.end - members.begin,
           head * p.q.dim(2) * d);
    }
  });
}

// The sums of the members' rows of x, each times `share(members)`.
template <class Share>
void sum_members(const Problem& p, const Tensor& x, const Tensor& to, const Share& share) {
  const int64_t d = p.q.dim(3);
  for_clusters(p, [&](int64_t at, const int32_t* members, int64_t count, int64_t head) {
    real* const sum = to.data() + at;
    const real* const rows = x.data() + head;
    std::fill_n(sum, d, real(0));
    for (int64_t m = 0; m < count; ++m) add_row(sum, 1, rows + members[m] * d, d);
    for (int64_t c = 0; count > 0 && c < d; ++c) sum[c] *= share(count);
  });
}

// The members' rows of `to` get their cluster's row of x times share(members) added.
template <class Share>
void add_to_members(const Problem& p, const Tensor& x, const Tensor& to, const Share& share) {
  const int64_t d = p.q.dim(3);
  for_clusters(p, [&](int64_t at, const int32_t* members, int64_t count, int64_t head) {
    const real factor = count > 0 ? share(count) : real(0);
    real* const rows = to.data() + head;
    for (int64_t m = 0; m < count; ++m) add_row(rows + members[m] * d, factor, x.data() + at, d);
  });
}

// The members' rows of `to` become their cluster's row of x; rows of padding become 0.
void copy_to_members(const Problem& p, const Tensor& x, const Tensor& to) {
  const int64_t d = p.q.dim(3), len = p.q.dim(2);
  for_clusters(p, [&](int64_t at, const int32_t* members, int64_t count, int64_t head) {
    real* const rows = to.data() + head;
    for (int64_t m = 0; m < count; ++m) std::copy_n(x.data() + at, d, rows + members[m] * d);
  });
  for (int64_t head = 0; head < p.heads(); ++head)
    std::fill_n(to.data() + (head * len + p.valid(head)) * d, (len - p.valid(head)) * d, real(0));
}

real one(int64_t) { return 1; }
real mean_of(int64_t count) { return 1 / static_cast<real>(count); }

// [.., len, width] -> [.., len, width + 1], the last column `value`.
Tensor widened(const Tensor& x, real value) {
  const int64_t width = x.dim(3);
  const Tensor wide(x.shape().with(3, width + 1));
  for (int64_t row = 0; row < x.size() / width; ++row) {
    std::copy_n(x.data() + row * width, width, wide.data() + row * (width + 1));
    wide[row * (width + 1) + width] = value;
  }
  return wide;
}

// The softmax of the mean queries where the gradients of top weights are others than those of the
// outputs: their part of Σ w·dw is `dots`. It stands beside the outputs in a column of its own,
// where values are 0 and the gradient is 1.
void wide_backward(const Problem& p, const Tensor& of_clusters, const Tensor& dots,
                   std::span<Tensor> grads) {
  SoftmaxProblem wide = p.centroids;
  const int64_t d = wide.value_dim++;
  const Tensor out = widened(p.out, 0);
  for (int64_t row = 0; row < dots.size(); ++row) out[row * (d + 1) + d] = dots[row];
  std::array<Tensor, 3> own = {grads[0], grads[1], Tensor()};
  if (grads[2].defined()) own[2] = Tensor::zeros(p.v.shape().with(3, d + 1));
  softmax_backward(wide, p.means, p.k, widened(p.v, 0), out, p.log_sum, widened(of_clusters, 1),
                   own);
  if (!grads[2].defined()) return;
  for (int64_t row = 0; row < p.v.size() / d; ++row)
    for (int64_t c = 0; c < d; ++c) grads[2][row * d + c] += own[2][row * (d + 1) + c];
}

void backward(const Problem& p, const Tensor& grad, std::span<Tensor> grads) {
  const MemoryScope scope(Purpose::workspace);
  const Tensor of_clusters(p.means.shape()), of_means = Tensor::zeros(p.means.shape());
  sum_members(p, grad, of_clusters, one);
  std::array<Tensor, 3> own = {of_means, grads[1], grads[2]};
  if (p.options.keys == 0) {
    softmax_backward(p.centroids, p.means, p.k, p.v, p.out, p.log_sum, of_clusters, own);
  } else {
    const int64_t d = p.q.dim(3), count = p.clusters.clusters();
    const Tensor dots = Tensor::zeros(p.log_sum.shape());
    run_tasks(p.heads(), top_keys_backward_workspace(d, p.options.keys),
              [&](int64_t head, real* work) {
                if (p.valid(head) == 0) return;
                const auto part = [&](const Tensor& x, int64_t rows) {
                  return x.defined() ? x.data() + head * rows * d : nullptr;
                };
                const int64_t len = p.q.dim(2);
                top_keys_backward(p.top_head(head), p.clusters, head,
                                  {.grad = part(grad, len),
                                   .of_clusters = part(of_clusters, count),
                                   .q = part(grads[0], len),
                                   .k = part(grads[1], len),
                                   .v = part(grads[2], len),
                                   .means = part(of_means, count),
                                   .dots = dots.data() + head * count},
                                  work);
              });
    wide_backward(p, of_clusters, dots, own);
  }
  if (grads[0].defined()) add_to_members(p, of_means, grads[0], mean_of);
}

}  // namespace

Var clustered_attention(const Var& q, const Var& k, const Var& v, const Tensor& planes,
                        const ClusterOptions& options, const std::vector<int64_t>& kv_lengths) {
  const auto p =
      std::allocate_shared<Problem>(Recycled<Problem>(), q, k, v, planes, options, kv_lengths);
  const Tensor out = options.keys == 0 ? Tensor(q.shape()) : Tensor::zeros(q.shape());
  sum_members(*p, p->q, p->means, mean_of);
  softmax_forward(p->centroids, p->means, p->k, p->v, p->out, p->log_sum);
  if (p->options.keys == 0) {
    copy_to_members(*p, p->out, out);
  } else {
    const int64_t d = q.dim(3), len = q.dim(2);
    run_tasks(
        p->heads(), top_keys_workspace(len, d, p->options.keys), [&](int64_t head, real* work) {
          if (p->valid(head) > 0)
            weigh_top_keys(p->top_head(head), p->clusters, head, work, out.data() + head * len * d);
        });
  }
  return custom_op(out, {q, k, v},
                   [p](const Tensor& grad, std::span<Tensor> grads) { backward(*p, grad, grads); });
}

Cost clustered_cost(const AttentionShape& s, int64_t bits, const ClusterOptions& options) {
  const int64_t n = s.kv_len, heads = s.batch * s.heads, d = s.head_dim,
                count = std::min(options.clusters, n), keys = std::min(options.keys, n);
  SoftmaxProblem centroids{
      .batch = s.batch, .heads = s.heads, .q_len = count, .kv_len = n, .dim = d, .value_dim = d};
  const SoftmaxWork work = softmax_work(centroids);
  if (keys > 0) ++centroids.value_dim;
  const auto of = [](int64_t x) { return static_cast<double>(x); };
  const double size = sizeof(real);
  const double hashing = options.clusters >= n ? 0 : 2 * of(heads * n * bits * d);
  const double tops = keys == 0 ? 0 : 2 * of(heads * count * n * d) + 4 * of(heads * n * keys * d);
  const double kept = size * of(heads * n * d) + of(QueryClusters::bytes(heads, n, count)) +
                      size * of(heads * count * (2 * d + 1)) +
                      (size + 4) * of(heads * count * keys);
  const double room =
      std::max(work.workspace_bytes,
               keys == 0 ? 0.0 : of(workspace_bytes(heads, top_keys_workspace(n, d, keys))));
  const double clustering = of(QueryClusters::bytes(heads, n, count) +
                               QueryClusters::workspace(heads, n, d, options.clusters));
  return {.flops = work.flops + hashing + tops,
          .backward_flops = softmax_work(centroids).backward_flops +
                            (keys == 0 ? 0 : of(heads * keys * d) * (10 * of(n) + 8 * of(count))),
          .bytes = size * 4 * of(heads * n * d),
          .peak_bytes = std::max(kept + room, clustering)};
}

}  // namespace attn
