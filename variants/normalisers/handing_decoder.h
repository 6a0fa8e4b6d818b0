// A decoder around another one, which it hands changed positions, or whose answers it changes.
// Private to the engine.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "variants/api/decoder.h"

namespace attn {

// Hands positions on to an inner decoder, in tensors of its own. `gate_widths`: of gates that this
// decoder reads itself.
class HandingDecoder : public Decoder {
 protected:
  HandingDecoder(const Shape& position, std::unique_ptr<Decoder> inner,
                 std::vector<int64_t> gate_widths = {})
      : Decoder(position, inner->capacity(), std::move(gate_widths)),
        q_({position[0], position[1] * position[2], 1, position[3]}),
        k_({position[0], position[1], 1, position[3]}),
        v_(k_.shape()),
        out_(q_.shape()),
        inner_(std::move(inner)) {}

  Decoder& inner() const {  // without steps that were taken back here
    while (inner_->length() > length()) inner_->step_back();
    return *inner_;
  }
  int64_t query_heads() const { return q_.dim(1); }

  // Copies the position and answers it, into out_.
  void answer(const real* q, const real* k, const real* v) {
    std::copy_n(q, q_.size(), q_.data());
    std::copy_n(k, k_.size(), k_.data());
    std::copy_n(v, v_.size(), v_.data());
    inner().step(q_, k_, v_, out_);
  }

  Tensor q_, k_, v_, out_;  // of a step

 private:
  int64_t do_state_bytes() const override { return inner_->state_bytes(); }
  double do_step_flops() const override { return inner().step_flops(); }
  double do_step_bytes() const override { return inner().step_bytes(); }

  std::unique_ptr<Decoder> inner_;
};

}  // namespace attn
