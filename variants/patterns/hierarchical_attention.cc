// One softmax over all levels; see hierarchical_attention.h. Each level gives outputs and
// log-sum-exps, which are joined, a coarser level into the next finer one; causal, each into the
// rows. The backward of each level uses the joined ones. A mean of
// `count` positions counts so often by log(count) in its logit: one number for a whole level or,
// where some mean has fewer positions, a column beside the keys.
#include "variants/patterns/hierarchical_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "core/base/recycled.h"
#include "variants/patterns/hierarchical_joins.h"
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

  PositionMeans single() const { return {.heads = near.heads, .len = near.q_len}; }
  static real one(int64_t) { return 1; }  // in a column of queries for the counts that keys hold

  // keep: what only the backward reads, the means of all levels.
  void forward(bool keep) {
    softmax_forward(near, q, k, v, out, log_sum);
    const Tensor queries =
        causal && wide != 0 && !far.empty() ? single().of(q, near.dim, wide, one) : q;
    means.resize(far.size());
    for (size_t l = 0; l < far.size(); ++l) {
      make_means(l, keep);
      if (causal)
        add_to_later(far[l], means[l], queries);
      else
        attend_to_means(far[l], means[l]);
    }
    if (!causal) join_levels(keep);
    if (!causal && !near.kv_lengths.empty()) clear_padding();
    if (!keep) means.clear();
  }

  // Of the means of the level before, each of which is let go after its last reader.
  void make_means(size_t l, bool keep) {
    const FarLevel& level = far[l];
    const auto make = [&](const Tensor& positions, Tensor LevelMeans::*part, int64_t more,
                          const auto& extra) {
      means[l].*part =
          level.means.of(l == 0 ? positions : means[l - 1].*part, near.dim, more, extra);
      if (l > 0 && !keep) means[l - 1].*part = {};
    };
    make(k, &LevelMeans::k, wide, [&](int64_t count) {
      return static_cast<real>(std::log(static_cast<double>(count)) / near.scale);
    });
    make(v, &LevelMeans::v, 0, one);
    if (!causal) make(q, &LevelMeans::q, wide, one);
  }

  void clear_padding() const {
    const int64_t n = near.q_len, d = near.dim;
    for (int64_t row = 0; row < log_sum.size(); ++row) {
      if (row % n < near.kv_lengths[static_cast<size_t>(row / n / near.heads)]) continue;
      std::fill_n(out.data() + row * d, d, real(0));
      log_sum[row] = kInfinity;
    }
  }

  void attend_to_means(const FarLevel& level, LevelMeans& its) const {
    its.out = Tensor(its.v.shape());
    its.log_sum = Tensor({q.dim(0), q.dim(1), its.v.dim(2)});
    softmax_forward(level.problem, its.q, its.k, its.v, its.out, its.log_sum);
  }

  void join_levels(bool keep) {
    Tensor coarse, coarse_sum;  // of the levels so far
    for (size_t l = far.size(); l-- > 0;) {
      const Tensor own = keep ? means[l].out.clone() : means[l].out,
                   own_sum = keep ? means[l].log_sum.clone() : means[l].log_sum;
      means[l].q = keep ? means[l].q : Tensor();
      shift_log_sums(own_sum, far[l].shift);
      if (coarse.defined()) join_coarser(coarse, coarse_sum, own, own_sum);
      coarse = own, coarse_sum = own_sum;
    }
    if (coarse.defined()) join_coarser(coarse, coarse_sum, out, log_sum);
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
    const auto of_outputs = causal ? OutputGradients() : output_gradients(grad);
    std::array<Tensor, 3> coarser;  // gradients of the means of the level above
    for (size_t l = far.size(); l-- > 0;) {
      std::array<Tensor, 3> own;
      if (grads[0].defined() && !causal) own[0] = Tensor::zeros(means[l].q.shape());
      if (grads[1].defined()) own[1] = Tensor::zeros(means[l].k.shape());
      if (grads[2].defined()) own[2] = Tensor::zeros(means[l].v.shape());
      const LevelMeans& its = means[l];
      if (causal)
        backward_of_later(far[l], its, grad, grads, own);
      else
        softmax_backward(far[l].problem, its.q, its.k, its.v, its.out, its.log_sum,
                         of_outputs[l].first, own, of_outputs[l].second);
      for (size_t i = 0; i < 3; ++i)
        if (coarser[i].defined()) far[l + 1].means.spread(coarser[i], own[i], near.dim);
      coarser = own;
    }
    for (size_t i = 0; i < 3; ++i)
      if (coarser[i].defined()) far[0].means.spread(coarser[i], grads[i], near.dim);
  }

  // Of each level's outputs and log-sum-exps. A mean query stands for several rows, each with a
  // share of its weights.
  using OutputGradients =
      std::vector<std::pair<Tensor, Tensor>, Recycled<std::pair<Tensor, Tensor>>>;
  OutputGradients output_gradients(const Tensor& grad) const {
    OutputGradients made;
    RowShares shares = RowShares::of_rows(grad, out, log_sum);
    for (size_t l = 0; l < far.size(); ++l) {
      shares = shares.coarser();
      made.emplace_back(Tensor(means[l].out.shape()), Tensor(means[l].log_sum.shape()));
      shares.take(means[l].out, means[l].log_sum, far[l].shift, made[l].first, made[l].second);
    }
    return made;
  }

  void backward_of_later(const FarLevel& level, const LevelMeans& its, const Tensor& grad,
                         std::span<Tensor> grads, const std::array<Tensor, 3>& own) const {
    const Tensor queries = wide != 0 ? single().of(q, near.dim, wide, one) : q,
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
    if (of_queries.defined()) single().spread(of_queries, grads[0], near.dim);
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
