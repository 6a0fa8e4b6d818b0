// One softmax over all levels; see hierarchical_attention.h. Each level gives outputs and
// log-sum-exps, which are joined; the backward of each level uses the joined ones. A mean of
// `count` positions counts so often by log(count) in its logit: one number for a whole level or,
// where some mean has fewer positions, a column beside the keys.
#include "variants/patterns/hierarchical_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>

#include "core/base/marks.h"
#include "core/simd/rows.h"
#include "variants/patterns/hierarchical_levels.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

struct LevelMeans {
  Tensor k, v;
  Tensor q, out, log_sum;  // not causal
};

struct Hierarchy : HierarchyLevels {
  using HierarchyLevels::HierarchyLevels;

  Tensor q, k, v, out, log_sum;
  std::vector<LevelMeans, Recycled<LevelMeans>> means = {};  // of each far level

  // With a column of ones for the counts that keys hold.
  Tensor queries_of(const PositionMeans& of_positions) const {
    return of_positions.of(q, wide, [](int64_t) { return real(1); });
  }
  PositionMeans single() const { return {.heads = near.heads, .len = near.q_len}; }

  // keep: what only the backward reads, the means of all levels.
  void forward(bool keep) {
    softmax_forward(near, q, k, v, out, log_sum);
    const Tensor queries = causal && wide != 0 && !far.empty() ? queries_of(single()) : q;
    for (const FarLevel& level : far) {
      means.push_back({.k = level.means.of(k, wide,
                                           [&](int64_t count) {
                                             const double times = static_cast<double>(count);
                                             return static_cast<real>(std::log(times) / near.scale);
                                           }),
                       .v = level.means.of(v)});
      if (causal)
        add_to_later(level, means.back(), queries);
      else
        add_means(level, means.back());
      if (!keep) means.clear();
    }
    if (!causal && !near.kv_lengths.empty()) clear_padding();
  }

  void clear_padding() const {
    const int64_t n = near.q_len, d = near.dim;
    for (int64_t row = 0; row < log_sum.size(); ++row) {
      if (row % n < near.kv_lengths[static_cast<size_t>(row / n / near.heads)]) continue;
      std::fill_n(out.data() + row * d, d, real(0));
      log_sum[row] = kInfinity;
    }
  }

  void add_means(const FarLevel& level, LevelMeans& its) const {
    its.q = queries_of(level.means);
    its.out = Tensor(its.v.shape());
    its.log_sum = Tensor({q.dim(0), q.dim(1), its.v.dim(2)});
    softmax_forward(level.problem, its.q, its.k, its.v, its.out, its.log_sum);
    const Mark mark(Part::softmax);
    const int64_t n = near.q_len, d = near.dim, m = its.v.dim(2);
    over_range(log_sum.size(), 3 * d, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t cell = row / n * m + row % n / level.means.size;
        const real theirs = its.log_sum[cell];
        const Join joint(log_sum[row], theirs == kInfinity ? theirs : theirs + level.shift);
        real* const into = out.data() + row * d;
        const real* const from = its.out.data() + cell * d;
        ATTN_INDEPENDENT
        for (int64_t c = 0; c < d; ++c) into[c] = joint.near * into[c] + joint.far * from[c];
        log_sum[row] = joint.log_sum;
      }
    });
  }

  void add_to_later(const FarLevel& level, const LevelMeans& its, const Tensor& queries) const {
    const MemoryScope scope(Purpose::workspace);
    in_chunks(level.pairs(), level.queries.chunk(kForwardArrays, near.dim), [&](Span which) {
      const Tensor gq = level.queries.gather(queries, which),
                   more(gq.shape().with(3, near.value_dim)), sum({gq.dim(0), 1, gq.dim(2)});
      softmax_forward(level.part(which), gq, level.keys.gather(its.k, which),
                      level.keys.gather(its.v, which), more, sum);
      join_rows(level.queries, which, more, sum, level.shift, out, log_sum);
    });
  }

  void backward(const Tensor& grad, std::span<Tensor> grads) const {
    softmax_backward(near, q, k, v, out, log_sum, grad, grads);
    const MemoryScope scope(Purpose::workspace);
    for (size_t l = 0; l < far.size(); ++l) {
      std::array<Tensor, 3> own;
      if (grads[1].defined()) own[1] = Tensor::zeros(means[l].k.shape());
      if (grads[2].defined()) own[2] = Tensor::zeros(means[l].v.shape());
      if (causal)
        backward_of_later(far[l], means[l], grad, grads, own);
      else
        backward_of_means(far[l], means[l], grad, grads, own);
      for (const size_t i : {1u, 2u})
        if (grads[i].defined()) far[l].means.spread(own[i], grads[i]);
    }
  }

  // A mean query stands for several rows, each with a share of its weights.
  void backward_of_means(const FarLevel& level, const LevelMeans& its, const Tensor& grad,
                         std::span<Tensor> grads, std::array<Tensor, 3>& own) const {
    const Tensor of_out = Tensor::zeros(its.out.shape()), of_sum(its.log_sum.shape());
    add_shares(level, its, grad, of_out, of_sum);
    if (grads[0].defined()) own[0] = Tensor::zeros(its.q.shape());
    softmax_backward(level.problem, its.q, its.k, its.v, its.out, its.log_sum, of_out, own, of_sum);
    if (grads[0].defined()) level.means.spread(own[0], grads[0]);
  }

  // The gradients of a level's outputs and log-sum-exps. With s = exp(L_level - L), the joined
  // output has the term s·out_level, and ds = s·dL_level, less what all terms lose.
  void add_shares(const FarLevel& level, const LevelMeans& its, const Tensor& grad,
                  const Tensor& of_out, const Tensor& of_sum) const {
    const Mark mark(Part::softmax);
    const int64_t n = near.q_len, d = near.dim, m = its.v.dim(2), size = level.means.size;
    over_range(of_sum.size(), size * d, [&](int64_t begin, int64_t end) {
      for (int64_t cell = begin; cell < end; ++cell) {
        const int64_t start = cell / m * n, first = cell % m * size;
        real* const into = of_out.data() + cell * d;
        real dots = 0;
        for (int64_t row = start + first; row < start + std::min(first + size, n); ++row) {
          if (log_sum[row] == kInfinity || its.log_sum[cell] == kInfinity) continue;
          const real share = std::exp2(its.log_sum[cell] + level.shift - log_sum[row]);
          const real* const from = grad.data() + row * d;
          dots += share * row_dot(from, out.data() + row * d, d);
          ATTN_INDEPENDENT
          for (int64_t c = 0; c < d; ++c) into[c] += share * from[c];
        }
        of_sum[cell] = row_dot(into, its.out.data() + cell * d, d) - dots;
      }
    });
  }

  void backward_of_later(const FarLevel& level, const LevelMeans& its, const Tensor& grad,
                         std::span<Tensor> grads, const std::array<Tensor, 3>& own) const {
    const Tensor queries = wide != 0 ? queries_of(single()) : q,
                 of_queries = grads[0].defined() ? Tensor::zeros(queries.shape()) : Tensor();
    in_chunks(level.pairs(), level.queries.chunk(kBackwardArrays, near.dim), [&](Span which) {
      const Tensor gq = level.queries.gather(queries, which), gk = level.keys.gather(its.k, which),
                   gv = level.keys.gather(its.v, which),
                   sum = level.queries.gather(log_sum, which, kInfinity);
      for (real& x : sum.values()) x -= level.shift;
      std::array<Tensor, 3> parts;
      if (of_queries.defined()) parts[0] = Tensor::zeros(gq.shape());
      if (own[1].defined()) parts[1] = Tensor::zeros(gk.shape());
      if (own[2].defined()) parts[2] = Tensor::zeros(gv.shape());
      softmax_backward(level.part(which), gq, gk, gv, level.queries.gather(out, which), sum,
                       level.queries.gather(grad, which), parts);
      if (of_queries.defined()) level.queries.scatter_add(parts[0], which, of_queries);
      if (own[1].defined()) level.keys.scatter_add(parts[1], which, own[1]);
      if (own[2].defined()) level.keys.scatter_add(parts[2], which, own[2]);
    });
    if (of_queries.defined()) single().spread(of_queries, grads[0]);
  }
};

}  // namespace

Var hierarchical_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                           const Mask& mask) {
  const AttentionShape shape{q.dim(0), q.dim(1), q.dim(2), q.dim(2), q.dim(3)};
  const auto h = std::allocate_shared<Hierarchy>(Recycled<Hierarchy>(), shape, block, mask.causal,
                                                 mask.kv_lengths);
  h->q = q.value(), h->k = k.value(), h->v = v.value();
  h->out = Tensor(q.shape());
  h->log_sum = Tensor({q.dim(0), q.dim(1), q.dim(2)});
  h->forward(recording({q, k, v}));
  return custom_op(h->out, {q, k, v},
                   [h](const Tensor& grad, std::span<Tensor> grads) { h->backward(grad, grads); });
}

}  // namespace attn
