// Decoding by additive attention; see additive_attention.h. A step projects one query and one key,
// and computes one exponential for each unit and cached position. Parallel over batch × heads.
#include <numbers>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/attention_rows.h"
#include "variants/scores/additive_attention.h"
#include "variants/scores/additive_scores.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

class AdditiveDecoder final : public Decoder {
 public:
  AdditiveDecoder(const Shape& position, int64_t capacity, const AdditiveWeights& weights)
      : Decoder(position, capacity),
        own_heads_(position[1]),
        units_(weights.weight.dim(1)),
        weights_(weights),
        cache_(heads(), capacity, units_, head_dim()) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    run_tasks(heads(), units_, [&](int64_t head, real* work) {
      Tally done;
      for (int64_t j = 0; j < len; ++j)
        append(head, length() + j, k.data() + (head * len + j) * dim,
               v.data() + (head * len + j) * dim, work, done);
    });
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim();
    run_tasks(heads(), units_, [&](int64_t head, real* work) {
      Tally done;
      append(head, length(), k + head * dim, v + head * dim, work, done);
      project(weights_.to_query, head, q + head * dim, work, done);
      answer(head, length() + 1, work, out + head * dim, done);
    });
  }

  void project(const Tensor& matrix, int64_t head, const real* x, real* to, Tally& done) const {
    const real* const from = matrix.data() + head % own_heads_ * head_dim() * units_;
    product(1, units_, head_dim(), {x, head_dim()}, {from, units_}, to, units_);
    done.multiply_adds(head_dim() * units_);
    if (is_of_first(head)) done.moved<real>(head_dim() * units_);
  }

  // Heads of several sequences share their weights, which are read once.
  bool is_of_first(int64_t head) const { return head < own_heads_; }

  void append(int64_t head, int64_t position, const real* k, const real* v, real* work,
              Tally& done) const {
    project(weights_.to_key, head, k, work, done);
    cache_.put(head, position, work, v);
    done.moved<real>(units_ + head_dim());
  }

  void answer(int64_t head, int64_t count, const real* query, real* out, Tally& done) const {
    const int64_t dim = head_dim();
    RowSums found{.sum = out};
    std::fill_n(out, dim, real(0));
    alignas(64) real logits[kPanel];
    for (int64_t first = 0; first < count; first += kPanel) {
      const int64_t keys = std::min(kPanel, count - first);
      score(head, first, keys, query, logits);
      add_keys(keys, logits, cache_.values(head, first), dim, found);
      done.other_flops(3 * units_ * keys);  // a sum, a product and a sum for each unit
      done.multiply_adds(dim * keys);
      done.moved<real>((units_ + dim) * keys);
    }
    if (is_of_first(head)) done.moved<real>(units_);
    divide_row(dim, out, found.row_sum, out);
  }

  // Logits of a panel in units of log2, but for a constant.
  void score(int64_t head, int64_t first, int64_t keys, const real* query, real* logits) const {
    const int64_t width = cache_.panel_width(first);
    const real* const panel = cache_.panel(head, first);
    const real* const weight = weights_.weight.data() + head % own_heads_ * units_;
    std::fill_n(logits, keys, real(0));
    for (int64_t c = 0; c < units_; ++c) {
      const real factor = static_cast<real>(-2 * std::numbers::log2e) * weight[c], a = query[c];
      const real* const b = panel + c * width;
      add_additive_unit(keys, a, b, factor, logits);
    }
  }

  int64_t do_state_bytes() const override { return cache_.bytes(); }
  double do_step_flops() const override {
    return static_cast<double>(
        heads() * (4 * head_dim() * units_ + (3 * units_ + 2 * head_dim()) * (length() + 1)));
  }
  double do_step_bytes() const override {  // the cache read, one position written, the projections
    return static_cast<double>(sizeof(real)) *
           static_cast<double>(heads() * (units_ + head_dim()) * (length() + 2) +
                               own_heads_ * (2 * head_dim() + 1) * units_);
  }

  int64_t own_heads_, units_;  // heads of one batch entry
  AdditiveWeights weights_;
  PanelCache cache_;
};

}  // namespace

std::unique_ptr<Decoder> additive_decoder(const Shape& position, int64_t capacity,
                                          const AdditiveWeights& weights) {
  if (position[2] > 1) return nullptr;  // each head projects keys by weights of its own
  return std::make_unique<AdditiveDecoder>(position, capacity, weights);
}

}  // namespace attn
