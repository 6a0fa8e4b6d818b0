// A decoder that advances the state of each head by itself, one position after the other: the loops
// over heads, which threads share, and over positions. A step of a head is the decoder's own.
#pragma once

#include <cstdint>

#include "core/base/counters.h"
#include "variants/api/decoder.h"

namespace attn {

class HeadDecoder : public Decoder {
 protected:
  using Decoder::Decoder;

  // Appends position `i` of this call to the state of a head of one row of k and v. A null q
  // computes no output.
  virtual void step_of(int64_t head, int64_t i, const real* q, const real* k, const real* v,
                       real* out, Tally& done) const = 0;
  // Multiply-adds of a step of one head, roughly: few are not shared among threads.
  virtual int64_t step_work() const { return head_dim() * head_dim(); }
  // Positions that states hold before this call, those taken back included.
  int64_t appended() const { return appended_; }

  void do_extend(const Tensor& k, const Tensor& v) override;
  void do_step(const real* q, const real* k, const real* v, real* out) override;

 private:
  int64_t appended_ = 0;
};

}  // namespace attn
