// The wider plug: what mixes positions without queries and keys. The multi-head layer gives it the
// layer's input itself, and neither projects nor pays for projections; everything that measures and
// checks an Attention takes it as one that looks at its values alone.
#pragma once

#include "variants/api/attention.h"

namespace attn {

// width = heads · head_dim: heads say how wide it is, and nothing else. Sets Traits::mixer. Cost is
// that of mix().
class Mixer : public Attention {
 public:
  // x [batch, len, width] -> the same shape. The mask as for self-attention: positions at or beyond
  // kv_lengths are never read.
  Var mix(const Var& x, const Mask& mask = {}) const;

 protected:
  using Attention::Attention;
  int64_t width() const { return config().heads * config().head_dim; }

 private:
  virtual Var do_mix(const Var& x, const Mask& mask) const = 0;
  // v [batch, heads, len, head_dim], merged and split again.
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const final;
};

// Null: it looks at queries and keys.
const Mixer* as_mixer(const Attention& attention);

// Decodes rows of all heads side by side, whatever the queries and keys are.
class MixerDecoder : public Decoder {
 protected:
  // `position` is [batch, heads, 1, head_dim].
  MixerDecoder(const Shape& position, int64_t capacity)
      : Decoder(position, capacity), batch_(position[0]) {}
  int64_t batch() const { return batch_; }
  int64_t width() const { return heads() / batch_ * head_dim(); }

 private:
  // x, out [batch, width]: the next position; a null `out` is not asked for.
  virtual void do_next(const real* x, real* out) = 0;
  void do_extend(const Tensor& k, const Tensor& v) final;
  void do_step(const real* q, const real* k, const real* v, real* out) final;

  int64_t batch_;
};

}  // namespace attn
