// Decoding by any rule that makes weights of complete rows; see strip_attention.h. Bound by reading
// the KV cache. Parallel over heads of keys, or over batch entries where heads share a rule.
#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/normalisers/strip_attention.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

class StripDecoder final : public Decoder {
 public:
  StripDecoder(const Shape& position, int64_t capacity, const RowRule& rule)
      : Decoder(position, capacity),
        rule_(rule),
        together_(rule->group > 1 ? position[1] : 1),
        cache_(heads(), capacity, head_dim(), head_dim()) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    over_range(heads(), len * dim, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * len; row < end * len; ++row)
        cache_.put(row / len, length() + row % len, k.data() + row * dim, v.data() + row * dim);
    });
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), tasks = heads() / together_;
    const Block block(static_cast<size_t>(tasks * work_reals()) * sizeof(real), Purpose::workspace);
    over_range(tasks, together_ * group() * (length() + 1) * dim, [&](int64_t begin, int64_t end) {
      Tally done;
      for (int64_t task = begin; task < end; ++task)
        answer(task, q, k, v, static_cast<real*>(block.data()) + task * work_reals(), out, done);
    });
  }

  // Of the longest row: blocks of one size come back from the pool at every step.
  int64_t stride() const { return (capacity() + kPanel - 1) / kPanel * kPanel + 16; }
  int64_t maps() const { return together_ * group() * rule_->parts; }  // of a task
  int64_t work_reals() const {
    return padded_reals(group() * head_dim()) + maps() * stride() +
           padded_reals(rule_->room_reals(stride()));
  }

  // The queries of the heads of a task: their logits one row a map, then weights, then outputs.
  void answer(int64_t task, const real* q, const real* k, const real* v, real* work, real* out,
              Tally& done) const {
    const int64_t dim = head_dim(), count = length() + 1, rows = group(), parts = rule_->parts;
    const int64_t row = parts * stride();  // from a query's logits to those of the next
    real* const logits = work + padded_reals(rows * dim);
    for (int64_t h = 0; h < together_; ++h) {
      const int64_t head = task * together_ + h;
      cache_.put(head, length(), k + head * dim, v + head * dim);
      score(head, q + head * rows * dim, work, logits + h * rows * row);
    }
    const int64_t units = together_ * rows / rule_->group;
    for (int64_t u = 0; u < units; ++u)
      rule_->weigh({rule_->group * parts, 1, stride(), &count, logits + u * rule_->group * row,
                    logits + maps() * stride()});
    for (int64_t h = 0; h < together_; ++h) {
      const int64_t head = task * together_ + h;
      std::fill_n(out + head * rows * dim, rows * dim, real(0));
      add_product(rows, dim, count, {logits + h * rows * row, row}, {cache_.values(head, 0), dim},
                  out + head * rows * dim, dim);
    }
    done.multiply_adds(2 * together_ * rows * count * dim);
    done.other_flops(static_cast<int64_t>(rule_->flops) * units * count);
    done.moved<real>(2 * together_ * (count + 1) * dim);
  }

  void score(int64_t head, const real* q, real* queries, real* logits) const {
    const int64_t dim = head_dim(), count = length() + 1, parts = rule_->parts;
    const int64_t depth = dim / parts;
    const auto scale = static_cast<real>(1 / std::sqrt(static_cast<double>(depth)));
    for (int64_t i = 0; i < group() * dim; ++i) queries[i] = scale * q[i];
    for (int64_t first = 0; first < count; first += kPanel) {
      const int64_t width = cache_.panel_width(first);
      for (int64_t part = 0; part < parts; ++part)
        product(group(), std::min(kPanel, count - first), depth, {queries + part * depth, dim},
                {cache_.panel(head, first) + part * depth * width, width},
                logits + part * stride() + first, parts * stride());
    }
  }

  int64_t do_state_bytes() const override { return cache_.bytes(); }
  double do_step_flops() const override {
    const auto queries = static_cast<double>(heads() * group());
    return (4 * queries * static_cast<double>(head_dim()) +
            queries / static_cast<double>(rule_->group) * rule_->flops) *
           static_cast<double>(length() + 1);
  }
  double do_step_bytes() const override {  // the cache read, one position of it written
    return 2 * static_cast<double>(sizeof(real)) *
           static_cast<double>(heads() * head_dim() * (length() + 2));
  }

  RowRule rule_;
  int64_t together_;  // heads of keys of a task
  PanelCache cache_;
};

}  // namespace

std::unique_ptr<Decoder> strip_decoder(const Shape& position, int64_t capacity,
                                       const RowRule& rule) {
  return std::make_unique<StripDecoder>(position, capacity, rule);
}

}  // namespace attn
