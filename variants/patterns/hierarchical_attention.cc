// One softmax over all levels; see hierarchical_attention.h. Each level gives outputs and
// log-sum-exps, which are joined, a coarser level into the next finer one. The backward of each
// level uses the joined ones. A mean of `count` positions counts so often by log(count) in its
// logit: one number for a whole level or, where some mean has fewer positions, a column beside the
// keys.
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
  Tensor q, k, v, out, log_sum;
};

// Every other row of finer [batch, heads, m, dim or more], with 1 in `more` columns behind dim: the
// first position of each cell stands for the cell.
Tensor firsts(const Tensor& finer, int64_t dim, int64_t more) {
  const Mark mark(Part::sums);
  const int64_t m = finer.dim(2), cells = (m + 1) / 2, width = dim + more, from = finer.dim(3);
  const Tensor made({finer.dim(0), finer.dim(1), cells, width});
  over_range(finer.dim(0) * finer.dim(1) * cells, dim, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      std::copy_n(finer.data() + (at / cells * m + at % cells * 2) * from, dim,
                  made.data() + at * width);
      std::fill_n(made.data() + at * width + dim, more, real(1));
    }
  });
  return made;
}

// Adds the gradients of what firsts() made to those of the finer rows.
void spread_firsts(const Tensor& made, const Tensor& finer, int64_t dim) {
  const Mark mark(Part::sums);
  const int64_t m = finer.dim(2), cells = made.dim(2);
  over_range(made.dim(0) * made.dim(1) * cells, dim, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const real* const from = made.data() + at * made.dim(3);
      real* const into = finer.data() + (at / cells * m + at % cells * 2) * finer.dim(3);
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < dim; ++c) into[c] += from[c];
    }
  });
}

struct Hierarchy : HierarchyLevels {
  using HierarchyLevels::HierarchyLevels;

  Tensor q, k, v, out, log_sum;
  std::vector<LevelMeans, Recycled<LevelMeans>> means = {};  // of each far level

  static real one(int64_t) { return 1; }  // in a column of queries for the counts that keys hold

  // keep: what only the backward reads, the means of all levels.
  void forward(bool keep) {
    softmax_forward(near, q, k, v, out, log_sum);
    means.resize(far.size());
    for (size_t l = 0; l < far.size(); ++l) {
      make_means(l, keep);
      attend_to_means(far[l], means[l]);
    }
    join_levels(keep);
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
    if (!causal) return make(q, &LevelMeans::q, wide, one);
    means[l].q = firsts(l == 0 ? q : means[l - 1].q, near.dim, wide);
    if (l > 0 && !keep) means[l - 1].q = {};
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

  void backward(const Tensor& grad, std::span<Tensor> grads) const {
    softmax_backward(near, q, k, v, out, log_sum, grad, grads);
    const MemoryScope scope(Purpose::workspace);
    const auto of_outputs = output_gradients(grad);
    std::array<Tensor, 3> coarser;  // gradients of the means of the level above
    for (size_t l = far.size(); l-- > 0;) {
      std::array<Tensor, 3> own;
      if (grads[0].defined()) own[0] = Tensor::zeros(means[l].q.shape());
      if (grads[1].defined()) own[1] = Tensor::zeros(means[l].k.shape());
      if (grads[2].defined()) own[2] = Tensor::zeros(means[l].v.shape());
      const LevelMeans& its = means[l];
      softmax_backward(far[l].problem, its.q, its.k, its.v, its.out, its.log_sum,
                       of_outputs[l].first, own, of_outputs[l].second);
      if (l + 1 < far.size()) spread(far[l + 1], coarser, own);
      coarser = own;
    }
    if (!far.empty()) spread(far[0], coarser, grads);
  }

  // Adds gradients of a level's queries, keys and values to those that they are made of.
  void spread(const FarLevel& level, std::span<const Tensor> of, std::span<Tensor> to) const {
    for (size_t i = 0; i < 3; ++i) {
      if (!of[i].defined()) continue;
      if (causal && i == 0)
        spread_firsts(of[i], to[i], near.dim);
      else
        level.means.spread(of[i], to[i], near.dim);
    }
  }

  // Of each level's outputs and log-sum-exps. The query of a cell stands for several rows, each
  // with a share of its weights.
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
