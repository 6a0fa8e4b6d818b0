// Decoding with the state of decayed linear attention; see decayed_attention.h. A step reads and
// writes head_dim² numbers a head.
#include <utility>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "variants/gated/decayed_attention.h"
#include "variants/gated/decayed_step.h"

namespace attn {
namespace {

class DecayedDecoder final : public Decoder {
 public:
  DecayedDecoder(const Shape& position, int64_t capacity, int64_t gate_width, double scale,
                 DecayOf decay_of)
      : Decoder(position, capacity, {gate_width}),
        heads_each_(position[1]),
        scale_(static_cast<real>(scale)),
        decay_of_(std::move(decay_of)),
        states_(Tensor::zeros({heads(), head_dim(), head_dim()})) {
    const MemoryScope scope(Purpose::workspace);
    work_ = Tensor({heads(), 2 * head_dim()});
  }

 private:
  // Appends a position of `head` with these rows.
  void append(int64_t head, const real* k, const real* v, const real* gate) const {
    const int64_t dim = head_dim();
    real *const decay = work_.data() + head * 2 * dim, *const value = decay + dim;
    const real factor = decay_of_(head % heads_each_, gate, decay);
    for (int64_t j = 0; j < dim; ++j) value[j] = factor * v[j];
    decay_and_write(dim, k, value, decay, state(head));
  }
  real* state(int64_t head) const { return states_.data() + head * head_dim() * head_dim(); }

  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim(), width = gate_widths()[0];
    const real* const gate = gates()[0].data();
    parallel_for(heads(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * len; row < end * len; ++row)
        append(row / len, k.data() + row * dim, v.data() + row * dim, gate + row * width);
    });
    count_flops(3 * static_cast<double>(heads() * len * dim * dim));
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), width = gate_widths()[0];
    const real* const gate = gates()[0].data();
    over_range(heads(), 2 * dim * dim, [&](int64_t begin, int64_t end) {
      Tally done;
      for (int64_t head = begin; head < end; ++head) {
        append(head, k + head * dim, v + head * dim, gate + head * width);
        read_state(dim, scale_, q + head * dim, state(head), out + head * dim);
        done.other_flops(5 * dim * dim);
        done.moved<real>(2 * dim * dim);
      }
    });
  }

  int64_t do_state_bytes() const override {
    return states_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override { return 5 * static_cast<double>(states_.size()); }
  double do_step_bytes() const override { return 2 * static_cast<double>(do_state_bytes()); }

  int64_t heads_each_;  // of a batch entry
  real scale_;
  DecayOf decay_of_;
  Tensor states_;  // [heads, dim, dim]
  Tensor work_;    // [heads, 2 · dim]: of a step, the decays and the value
};

}  // namespace

std::unique_ptr<Decoder> decayed_decoder(const Shape& position, int64_t capacity,
                                         int64_t gate_width, double scale, DecayOf decay_of) {
  if (position[2] > 1) return nullptr;
  return std::make_unique<DecayedDecoder>(position, capacity, gate_width, scale,
                                          std::move(decay_of));
}

}  // namespace attn
