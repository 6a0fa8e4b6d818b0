// See path_decoder.h. The map of the last position waits until the next one comes, and its query
// passes it instead: a step that is taken back and made again replaces the first. Keys stand in
// panels of kPanel positions, so that products with a row and updates by a row read memory in
// order.
#include "variants/chunked/path_decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/simd/product.h"
#include "variants/chunked/head_decoder.h"
#include "variants/chunked/key_rows.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

class PathDecoder final : public HeadDecoder {
 public:
  PathDecoder(const Shape& position, int64_t capacity)
      : HeadDecoder(position, capacity, {head_dim_of(position), 1}),
        panels_((capacity + kPanel - 1) / kPanel),
        keys_(Tensor::zeros({heads(), panels_, head_dim(), kPanel})),
        values_({heads(), panels_ * kPanel, head_dim()}),
        pending_({heads(), head_dim() + 1}),
        work_(static_cast<size_t>(heads() * work_reals()) * sizeof(real), Purpose::workspace) {}

 private:
  static int64_t head_dim_of(const Shape& position) { return position[3]; }
  int64_t work_reals() const {
    return padded_reals(head_dim()) + padded_reals(2 * kPanel) + GroupSums::reals(1, head_dim());
  }

  void step_of(int64_t head, int64_t i, const real* q, const real* k, const real* v, real* out,
               Tally& done) const override {
    const int64_t t = length() + i, dim = head_dim();
    real *const query = static_cast<real*>(work_.data()) + head * work_reals(),
                *const logits = query + padded_reals(dim), *const along = logits + kPanel;
    const Tensor &directions = gates()[0], &strengths = gates()[1];
    if (t > settled_) move_keys(head, t - 1, along, done);
    real* const w = pending(head);
    std::copy_n(directions.data() + (head * directions.dim(2) + i) * dim, dim, w);
    unit_row(1, nullptr, dim, w);
    w[dim] = 2 / (1 + std::exp(-strengths[head * strengths.dim(2) + i]));
    real* const key = panel(head, t) + t % kPanel;
    for (int64_t c = 0; c < dim; ++c) key[c * kPanel] = k[c];
    std::copy_n(v, dim, value(head, t));
    done.moved<real>(2 * dim);
    done.multiply_adds(dim);  // the length of the direction
    if (!q) return;
    // Past keys meet this position's map in the query, its own key does not.
    real own = 0, across = 0;
    for (int64_t c = 0; c < dim; ++c) own += q[c] * k[c], across += q[c] * w[c];
    const real factor =
        static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
    for (int64_t c = 0; c < dim; ++c) query[c] = factor * (q[c] - w[dim] * across * w[c]);
    done.multiply_adds(3 * dim);
    const GroupSums sums = GroupSums::in(along + kPanel, 1, dim);
    for (int64_t first = 0; first <= t; first += kPanel) {
      const int64_t count = std::min(kPanel, t + 1 - first);
      product(1, count, dim, {query, dim}, {panel(head, first), kPanel}, logits, kPanel);
      if (t < first + count) logits[t - first] = factor * own;
      add_keys(count, logits, kPanel, value(head, first), dim, sums);
      done.multiply_adds(2 * count * dim);
      done.moved<real>(2 * count * dim);
    }
    divide_row(dim, sums.sum, sums.row_sum[0], out);
  }

  // Keys before position `last` pass the map of that position.
  void move_keys(int64_t head, int64_t last, real* along, Tally& done) const {
    const int64_t dim = head_dim();
    const real* const w = pending(head);
    for (int64_t first = 0; first < last; first += kPanel) {
      const int64_t count = std::min(kPanel, last - first);
      product(1, count, dim, {w, dim}, {panel(head, first), kPanel}, along, kPanel);
      for (int64_t j = 0; j < count; ++j) along[j] *= -w[dim];
      add_product(dim, count, 1, {w, 1}, {along, kPanel}, panel(head, first), kPanel);
      done.multiply_adds(2 * count * dim);
      done.moved<real>(2 * count * dim);
    }
  }

  real* panel(int64_t head, int64_t position) const {
    return keys_.data() + (head * panels_ + position / kPanel) * head_dim() * kPanel;
  }
  real* pending(int64_t head) const { return pending_.data() + head * (head_dim() + 1); }
  real* value(int64_t head, int64_t position) const {
    return values_.data() + (head * panels_ * kPanel + position) * head_dim();
  }
  int64_t step_work() const override { return 4 * (length() + 1) * head_dim(); }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * (keys_.size() + values_.size() + pending_.size());
  }
  // Keys that the next step moves by the map that waits.
  int64_t to_move() const { return length() > settled_ && length() > 1 ? length() - 1 : 0; }
  double do_step_flops() const override {
    constexpr int64_t kOwn = 2;  // the work of the position's own map, in that of keys
    return static_cast<double>(4 * heads() * head_dim() * (length() + 1 + to_move() + kOwn));
  }
  double do_step_bytes() const override {
    return sizeof(real) *
           static_cast<double>(2 * heads() * head_dim() * (length() + 2 + to_move()));
  }

  void do_extend(const Tensor& k, const Tensor& v) override {
    HeadDecoder::do_extend(k, v);
    settled_ = std::max(settled_, length() + k.dim(2) - 1);
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    HeadDecoder::do_step(q, k, v, out);
    settled_ = length();
  }

  int64_t panels_;
  int64_t settled_ = -1;  // the last position whose predecessor's map has met the keys
  Tensor keys_;           // [heads, panels, head_dim, kPanel]
  Tensor values_;         // [heads, positions, head_dim]
  Tensor pending_;  // the last w and β of each head [heads, head_dim + 1], which keys have not met
  Block work_;
};

}  // namespace

std::unique_ptr<Decoder> path_decoder(const Shape& position, int64_t capacity) {
  if (position[2] > 1) return nullptr;
  return std::make_unique<PathDecoder>(position, capacity);
}

}  // namespace attn
