// Each head's key and value, given to all query heads of its group; see repeating_decoder.h.
// O(heads · head_dim) a position beside the inner decoder.
#include "variants/api/repeating_decoder.h"

#include <algorithm>

#include "core/ops/ops_heads.h"

namespace attn {
namespace {

class RepeatingDecoder final : public Decoder {
 public:
  RepeatingDecoder(const Shape& position, std::unique_ptr<Decoder> inner)
      : Decoder(position, inner->capacity(), inner->gate_widths()), inner_(std::move(inner)) {
    const Shape row{position[0], position[1] * position[2], 1, position[3]};
    for (Tensor* tensor : {&q_, &k_, &v_, &out_}) *tensor = Tensor(row);
  }

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const NoGrad no_grad;
    go_back();
    const Tensor values = repeat_heads(Var(v), group()).value();
    if (keys_are_queries())
      inner_->extend(values, values, k, gates());
    else
      inner_->extend(repeat_heads(Var(k), group()).value(), values, {}, gates());
  }
  bool do_keys_are_queries() const override { return inner_->keys_are_queries(); }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    go_back();
    std::copy_n(q, q_.size(), q_.data());
    const int64_t dim = head_dim();
    for (int64_t row = 0; row < heads() * group(); ++row) {
      std::copy_n(k + row / group() * dim, dim, k_.data() + row * dim);
      std::copy_n(v + row / group() * dim, dim, v_.data() + row * dim);
    }
    inner_->step(q_, k_, v_, out_, gates());
    std::copy_n(out_.data(), out_.size(), out);
  }

  void go_back() const {  // steps that were taken back here
    while (inner_->length() > length()) inner_->step_back();
  }

  int64_t do_state_bytes() const override { return inner_->state_bytes(); }
  double do_step_flops() const override { return go_back(), inner_->step_flops(); }
  double do_step_bytes() const override { return go_back(), inner_->step_bytes(); }

  std::unique_ptr<Decoder> inner_;
  Tensor q_, k_, v_, out_;  // of a step: [batch, heads · group, 1, head_dim]
};

}  // namespace

std::unique_ptr<Decoder> repeating_decoder(const Shape& position, std::unique_ptr<Decoder> inner) {
  return std::make_unique<RepeatingDecoder>(position, std::move(inner));
}

}  // namespace attn
