// Tiled attention with relu in place of softmax; see relu_attention.h. Since relu(c·x) = c·relu(x),
// the queries are scaled by 1/sqrt(d) and 1/count, and the weights need only the relu. The forward
// is parallel over batch × heads × tiles; the backward, 10·pairs·d FLOPs, over heads or parts of a
// head.
#include "variants/scores/relu_attention.h"

#include <cmath>
#include <span>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/attention_rows.h"
#include "variants/scores/prefix_plane.h"

namespace attn {
namespace {

constexpr int64_t kReluPiece = PrefixPlane::kPiece;
constexpr int64_t kBackwardTile = 96;   // queries: weights and gradients of a block are 96 KiB each
constexpr int64_t kBackwardStrip = 24;  // queries, where the mask cuts through a tile

struct Problem {
  PrefixPlane plane;
  Tensor q, k, v;
  bool squared;

  // The factor of the dot products of query i of head h.
  real factor(int64_t h, int64_t i) const {
    const double root = squared ? 1 : std::sqrt(static_cast<double>(plane.dim));
    return static_cast<real>(1 /
                             (root * static_cast<double>(std::max<int64_t>(1, plane.seen(h, i)))));
  }
  void scale_queries(int64_t h, int64_t begin, int64_t end, real* to) const {
    const Mark mark(Part::elementwise);
    const int64_t d = plane.dim;
    for (int64_t i = begin; i < end; ++i, to += d) {
      const real* const from = q.data() + (h * plane.q_len + i) * d;
      const real by = factor(h, i);
      for (int64_t c = 0; c < d; ++c) to[c] = from[c] * by;
    }
  }
  void square(int64_t rows, int64_t cols, real* weights) const {
    const Mark mark(Part::scores);
    for (int64_t r = 0; squared && r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) weights[r * kReluPiece + c] *= weights[r * kReluPiece + c];
  }
  // Of a square, 2·weight: before relu_grad_row, and before the weights are squared.
  void scale_gradient(int64_t cols, const real* weight, real* grad) const {
    for (int64_t c = 0; squared && c < cols; ++c) grad[c] *= 2 * weight[c];
  }
  const real* key(int64_t h, int64_t j) const {
    return k.data() + (h * plane.kv_len + j) * plane.dim;
  }
  const real* value(int64_t h, int64_t j) const {
    return v.data() + (h * plane.kv_len + j) * plane.value_dim;
  }
};

struct ForwardLayout {  // offsets into a worker's workspace
  int64_t keys, weights, total;

  explicit ForwardLayout(const PrefixPlane& p) {
    keys = padded_reals(p.tile_rows * p.dim);  // behind the scaled queries
    weights = keys + padded_reals(packed_reals(std::min(kReluPiece, p.kv_len), p.dim));
    total = weights + PrefixPlane::kWideStrip * kReluPiece;
  }
};

class ReluForward {
 public:
  ReluForward(const Problem& problem, const Tensor& out)
      : x_(problem), p_(problem.plane), layout_(p_), out_(out) {}

  void run() const {
    run_tasks(p_.all_heads() * p_.tiles(), layout_.total, [&](int64_t task, real* work) {
      const int64_t begin = p_.tile_begin(task % p_.tiles());
      add_tile(task / p_.tiles(), begin, std::min(begin + p_.tile_rows, p_.q_len), work);
    });
  }

 private:
  real* out(int64_t h, int64_t i) const { return out_.data() + (h * p_.q_len + i) * p_.value_dim; }

  void add_tile(int64_t h, int64_t begin, int64_t end, real* work) const {
    std::fill(out(h, begin), out(h, end), real(0));
    x_.scale_queries(h, begin, end, work);
    double pairs = 0;
    const int64_t keys = p_.seen(h, end - 1);
    for (int64_t j = 0; j < keys; j += kReluPiece) {
      const int64_t cols = std::min(kReluPiece, keys - j);
      pack_transposed(x_.key(h, j), cols, p_.dim, p_.dim, work + layout_.keys);
      for (int64_t i = begin; i < end;) {
        const int64_t rows =
            p_.seen(h, i) >= j + cols ? PrefixPlane::kWideStrip : PrefixPlane::kNarrowStrip;
        const int64_t last = std::min(i + rows, end);
        pairs += add_strip(h, i, last, j, std::min(cols, p_.seen(h, last - 1) - j),
                           work + (i - begin) * p_.dim, work);
        i = last;
      }
    }
    count_flops(2 * pairs * static_cast<double>(p_.dim + p_.value_dim));
  }

  double add_strip(int64_t h, int64_t begin, int64_t end, int64_t first, int64_t cols,
                   const real* query, real* work) const {
    if (cols <= 0) return 0;
    const int64_t rows = end - begin;
    real* const weights = work + layout_.weights;
    product(rows, cols, p_.dim, {query, p_.dim}, packed(work + layout_.keys, p_.dim), weights,
            kReluPiece);
    relu_rows(rows, cols, weights, kReluPiece);
    x_.square(rows, cols, weights);
    p_.mask_beyond_prefix(h, begin, rows, first, cols, weights, kReluPiece, 0);
    add_product(rows, p_.value_dim, cols, {weights, kReluPiece}, {x_.value(h, first), p_.value_dim},
                out(h, begin), p_.value_dim);
    return static_cast<double>(rows * cols);
  }

  const Problem& x_;
  const PrefixPlane& p_;
  ForwardLayout layout_;
  const Tensor& out_;
};

class ReluBackward {
 public:
  ReluBackward(const Problem& problem, const Tensor& grad_out, std::span<Tensor> grads)
      : x_(problem), p_(problem.plane), grad_(grad_out), grads_(grads) {
    const int64_t heads = p_.all_heads(), rows = std::min(kBackwardTile, p_.q_len);
    parts_ = parts_of_units(heads);
    values_ = padded_reals(packed_reals(kReluPiece, p_.dim));
    query_ = values_ + padded_reals(packed_reals(kReluPiece, p_.value_dim));
    weights_ = query_ + padded_reals(rows * p_.dim);
    grad_scores_ = weights_ + rows * kReluPiece;
    total_ = grad_scores_ + rows * kReluPiece;
  }

  // In each round no two tasks touch the same keys or the same queries.
  void run() const {
    for (int64_t round = 0; round < parts_; ++round)
      run_tasks(p_.all_heads() * parts_, total_, [&](int64_t task, real* work) {
        const int64_t part = task % parts_;
        add_head(task / parts_, part, (part + round) % parts_, work);
      });
  }

 private:
  void add_head(int64_t h, int64_t key_part, int64_t query_part, real* work) const {
    double pairs = 0;
    for (int64_t j = key_part * kReluPiece; j < p_.length(h); j += parts_ * kReluPiece) {
      const int64_t cols = std::min(kReluPiece, p_.length(h) - j);
      pack_transposed(x_.key(h, j), cols, p_.dim, p_.dim, work);
      pack_transposed(x_.value(h, j), cols, p_.value_dim, p_.value_dim, work + values_);
      for (int64_t t = query_part * kBackwardTile; t < p_.q_len; t += parts_ * kBackwardTile) {
        const int64_t end = std::min(t + kBackwardTile, p_.q_len);
        const int64_t rows = p_.seen(h, t) >= j + cols ? kBackwardTile : kBackwardStrip;
        for (int64_t i = t; i < end; i += rows) {
          const int64_t last = std::min(i + rows, end);
          pairs += add_patch(h, i, last, j, std::min(cols, p_.seen(h, last - 1) - j), work);
        }
      }
    }
    const auto d = static_cast<double>(p_.dim), dv = static_cast<double>(p_.value_dim);
    count_flops(2 * pairs *
                (d + dv + (grads_[0].defined() ? d : 0) + (grads_[1].defined() ? d : 0) +
                 (grads_[2].defined() ? dv : 0)));
  }

  double add_patch(int64_t h, int64_t begin, int64_t end, int64_t first, int64_t cols,
                   real* work) const {
    if (cols <= 0) return 0;
    const int64_t d = p_.dim, dv = p_.value_dim, rows = end - begin;
    const int64_t row = h * p_.q_len + begin, key = h * p_.kv_len + first;
    real *const weights = work + weights_, *const grad_scores = work + grad_scores_;
    const real* const grad = grad_.data() + row * dv;
    x_.scale_queries(h, begin, end, work + query_);
    product(rows, cols, d, {work + query_, d}, packed(work, d), weights, kReluPiece);
    product(rows, cols, dv, {grad, dv}, packed(work + values_, dv), grad_scores, kReluPiece);
    relu_rows(rows, cols, weights, kReluPiece);
    p_.mask_beyond_prefix(h, begin, rows, first, cols, weights, kReluPiece, 0);
    {
      const Mark mark(Part::scores);
      for (int64_t r = 0; r < rows; ++r) {
        x_.scale_gradient(cols, weights + r * kReluPiece, grad_scores + r * kReluPiece);
        relu_grad_row(cols, weights + r * kReluPiece, x_.factor(h, begin + r),
                      grad_scores + r * kReluPiece);
      }
    }
    x_.square(rows, cols, weights);
    if (grads_[2].defined())
      add_product(cols, dv, rows, {weights, 1, kReluPiece}, {grad, dv}, grads_[2].data() + key * dv,
                  dv);
    if (grads_[1].defined())
      add_product(cols, d, rows, {grad_scores, 1, kReluPiece}, {x_.q.data() + row * d, d},
                  grads_[1].data() + key * d, d);
    if (grads_[0].defined())
      add_product(rows, d, cols, {grad_scores, kReluPiece}, {x_.key(h, first), d},
                  grads_[0].data() + row * d, d);
    return static_cast<double>(rows * cols);
  }

  const Problem& x_;
  const PrefixPlane& p_;
  int64_t parts_, values_, query_, weights_, grad_scores_, total_;  // offsets; packed keys are at 0
  const Tensor& grad_;
  std::span<Tensor> grads_;
};

}  // namespace

Var relu_attention(const Var& q, const Var& k, const Var& v, const Mask& mask, ReluPower power) {
  const Problem problem{PrefixPlane(q.shape(), k.shape(), v.shape(), mask), q.value(), k.value(),
                        v.value(), power == ReluPower::squared};
  const Tensor out(q.shape().with(3, v.dim(3)));
  ReluForward(problem, out).run();
  return custom_op(out, {q, k, v}, [problem](const Tensor& grad, std::span<Tensor> grads) {
    ReluBackward(problem, grad, grads).run();
  });
}

Cost relu_cost(const AttentionShape& shape, int64_t value_dim,
               const std::vector<int64_t>& kv_lengths) {
  PrefixPlane plane(shape);
  plane.kv_lengths = kv_lengths;
  if (value_dim > 0) plane.value_dim = value_dim;
  const double d = static_cast<double>(plane.dim), dv = static_cast<double>(plane.value_dim),
               size = sizeof(real);
  const double rows = static_cast<double>(plane.all_heads() * shape.q_len),
               keys = static_cast<double>(plane.all_heads() * shape.kv_len);
  return {.flops = 2 * (d + dv) * plane.pairs(PrefixPlane::kNarrowStrip),
          .backward_flops = (6 * d + 4 * dv) * plane.pairs(kBackwardStrip),
          .bytes = size * (d + dv) * (rows + keys),
          .peak_bytes = size * rows * dv +
                        static_cast<double>(workspace_bytes(plane.all_heads() * plane.tiles(),
                                                            ForwardLayout(plane).total)),
          .state_bytes = size * (d + dv) * keys};
}

}  // namespace attn
