// A mixer that hands something on to the next layer of its variant in a model, as RWKV-7 hands on
// the values of its first layer (Peng et al. 2025, arXiv:2503.14456) and Luna what its learned rows
// have packed (Ma et al. 2021, arXiv:2106.01540). Needs VariantInfo::carries. The first layer of
// the variant is given nothing; the others are built with AttentionConfig::receives.
#pragma once

#include <utility>

#include "variants/api/mixer.h"

namespace attn {

class CarryingMixer : public Mixer {
 public:
  struct Passed {
    Var out;     // as mix() answers
    Var handed;  // on to the next layer, of handed_shape()
  };
  // mix() of x [batch, len, width] and of what the layer before handed on; `received` is undefined
  // exactly where this is the first layer. Rows of positions at or beyond kv_lengths are not read.
  Passed pass(const Var& x, const Var& received, const Mask& mask = {}) const;
  // [batch, rows, numbers]: a row of each position, or rows of no position.
  virtual Shape handed_shape(int64_t batch, int64_t len) const = 0;
  // Whether it does with these parameters and this block.
  virtual bool carries() const { return true; }
  void check_received(bool defined) const;  // Error: too much, or too little

 protected:
  using Mixer::Mixer;

 private:
  virtual Passed do_pass(const Var& x, const Var& received, const Mask& mask) const = 0;
  Var do_mix(const Var& x, const Mask& mask) const final;
};

// The attention where it hands something on; null: it does not.
const CarryingMixer* as_carrying(const Attention& attention);

// Decodes such a mixer. What was received is of the next position alone, and is used up by it.
class CarryingDecoder : public MixerDecoder {
 public:
  void receive(const Tensor& row) { received_ = row; }  // handed_shape(batch, 1)
  // By the last position that was appended; it is held until it is taken.
  Tensor take_handed() { return std::exchange(handed_, Tensor()); }

 protected:
  using MixerDecoder::MixerDecoder;
  Tensor take_received() { return std::exchange(received_, Tensor()); }
  void hand_on(Tensor row) { handed_ = std::move(row); }

 private:
  Tensor received_, handed_;
};

}  // namespace attn
