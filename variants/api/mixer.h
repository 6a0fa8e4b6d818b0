// A mixer combines positions without queries and keys, as a recurrence or a convolution does. The
// multi-head layer passes its own input and makes no projections. To the code that measures and
// checks an Attention, a mixer is an Attention that reads only its values.
#pragma once

#include "variants/api/attention.h"

namespace attn {

// width = heads · head_dim; the number of heads has no other meaning. Needs Traits::mixer. cost()
// is the cost of mix().
class Mixer : public Attention {
 public:
  // x [batch, len, width] -> the same shape. The mask as for self-attention: positions at or beyond
  // kv_lengths are never read.
  Var mix(const Var& x, const Mask& mask = {}) const;
  // The same in bfloat16: x is widened to float32 on entry, and the output is rounded.
  BFloat16Tensor mix(const BFloat16Tensor& x, const Mask& mask = {}) const;

 protected:
  using Attention::Attention;
  void check_input(const Var& x, const Mask& mask) const;
  int64_t width() const { return config().heads * config().head_dim; }

 private:
  virtual Var do_mix(const Var& x, const Mask& mask) const = 0;
  // v [batch, heads, len, head_dim], merged and split again.
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const final;
};

// The attention as a mixer; null: it reads queries and keys.
const Mixer* as_mixer(const Attention& attention);

// Decodes rows of all heads side by side; queries and keys are not read.
class MixerDecoder : public Decoder {
 protected:
  // `position` is [batch, heads, 1, head_dim].
  MixerDecoder(const Shape& position, int64_t capacity)
      : Decoder(position, capacity), batch_(position[0]) {}
  int64_t batch() const { return batch_; }
  int64_t width() const { return heads() / batch_ * head_dim(); }
  int64_t position() const { return length() + ahead_; }  // that do_next() appends

 private:
  // Appends one position. x, out [batch, width]; out = null: the output is not computed.
  virtual void do_next(const real* x, real* out) = 0;
  void do_extend(const Tensor& k, const Tensor& v) final;
  void do_step(const real* q, const real* k, const real* v, real* out) final;

  int64_t batch_, ahead_ = 0;  // ahead_: positions of the call at hand that are appended
};

}  // namespace attn
