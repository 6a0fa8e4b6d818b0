// Decoding of a block: the mixer's decoder, and the last rows of each convolution. A step costs the
// projections of one position beside the mixer's own step.
#include <algorithm>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "variants/block/paper_parts.h"

namespace attn {
namespace {

class PaperDecoder final : public CarryingDecoder {
 public:
  PaperDecoder(const PaperBlock& block, const Shape& position, int64_t capacity)
      : CarryingDecoder(position, capacity),
        block_(block),
        inner_(block.inner().decoder(batch() * block.block().value_parts, capacity)) {
    for (const PaperBlock::Stream& stream : block.streams())
      held_.push_back(Tensor::zeros({batch(), stream.before + 1, stream.channels}));
  }

 private:
  void do_next(const real* x, real* out) override {
    const NoGrad no_grad;
    go_back(position());
    count_bytes(own_bytes());
    const Tensor row({batch(), 1, width()});
    std::copy_n(x, row.size(), row.data());
    const Tensor received = take_received();
    block_.check_received(received.defined());
    const PaperBlock::Inputs in = block_.inputs(
        Var(row), received.defined() ? Var(received) : Var(),
        [&](const Var& rows, const Convolved& by) { return convolved(rows.value(), by); });
    if (in.handed.defined()) hand_on(in.handed.value());
    ++appended_;
    const Tensor found = answered(in, out != nullptr);
    if (!out) return;
    const Tensor result = block_.output(Var(found), in).value();
    std::copy_n(result.data(), result.size(), out);
  }

  // What the mixer answers; undefined where `wanted` is false.
  Tensor answered(const PaperBlock::Inputs& in, bool wanted) {
    const std::vector<Tensor> gates = values_of(in.gates);
    if (const Mixer* const mixer = block_.inner_mixer()) {
      const AttentionConfig& config = mixer->config();
      const Tensor rows = in.values.value().reshaped({batch(), config.heads, 1, config.head_dim});
      if (!wanted) return inner_->extend(rows, rows), Tensor();
      const Tensor out(rows.shape());
      inner_->step(rows, rows, rows, out);
      return out.reshaped(in.values.shape());
    }
    const Tensor &q = in.q.value(), &k = in.k.value(), &v = in.v.value();
    if (!wanted) return inner_->extend(k, v, q, gates), Tensor();
    const Tensor out(v.shape());
    inner_->step(q, k, v, out, gates);
    return out;
  }

  // The convolution at the position of `rows` [batch, 1, channels], which are held from here on.
  Var convolved(const Tensor& rows, const Convolved& by) {
    const Tensor& held = held_[static_cast<size_t>(by.stream)];
    const int64_t count = held.dim(1), wide = held.dim(2);
    for (int64_t b = 0; b < batch(); ++b) {
      real* const first = held.data() + b * count * wide;
      std::copy(first + wide, first + count * wide, first);
      std::copy_n(rows.data() + b * wide, wide, first + (count - 1) * wide);
    }
    return slice(short_convolution(Var(held), by.taps, by.bias, by.activated), 1, count - 1, count);
  }

  // Takes back the steps that Decoder::step_back() took back. A mixer either overwrites the
  // position or adds the next step to its sums; the rows held for convolutions must do the same as
  // the mixer.
  void go_back(int64_t position) const {
    while (inner_->length() > position) inner_->step_back();
    for (; appended_ > position; --appended_)
      if (block_.block().replaces_steps) move_rows_back();
  }

  // Each row to the place of the one after it. The first is lost, which no convolution reads.
  void move_rows_back() const {
    for (const Tensor& held : held_)
      for (int64_t b = 0; b < held.dim(0); ++b) {
        real* const first = held.data() + b * held.dim(1) * held.dim(2);
        std::copy_backward(first, first + (held.dim(1) - 1) * held.dim(2),
                           first + held.dim(1) * held.dim(2));
      }
  }

  int64_t held_bytes() const {
    int64_t numbers = 0;
    for (const Tensor& held : held_) numbers += held.size();
    return numbers * static_cast<int64_t>(sizeof(real));
  }
  int64_t do_state_bytes() const override { return inner_->state_bytes() + held_bytes(); }
  double do_step_flops() const override {
    go_back(length());
    return inner_->step_flops() + static_cast<double>(batch()) * block_.dense_flops();
  }
  double do_step_bytes() const override {
    go_back(length());
    return inner_->step_bytes() + own_bytes();
  }
  // Of a step beside the mixer's own: the matrices are read, and the rows read and written.
  double own_bytes() const {
    return sizeof(real) * block_.dense_flops() / 2 + 2 * static_cast<double>(held_bytes());
  }

  const PaperBlock& block_;
  std::unique_ptr<Decoder> inner_;
  std::vector<Tensor> held_;  // of each stream: [batch, before + 1, channels]
  mutable int64_t appended_ = 0;
};

}  // namespace

std::unique_ptr<Decoder> paper_decoder(const PaperBlock& block, const Shape& position,
                                       int64_t capacity) {
  return std::make_unique<PaperDecoder>(block, position, capacity);
}

}  // namespace attn
