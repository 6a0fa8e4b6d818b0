// Decoders that forget: what the reference says of their steps, inputs of which rounding decides
// nothing, and which positions each step sees.
#pragma once

#include <memory>

#include "harness/check/subject.h"
#include "variants/api/forgetting.h"

namespace attn {

struct ForgettingCase {
  const Forgetting& forgetting;
  const Attention& attention;
  AttentionShape shape;
  int64_t kv_heads;

  std::unique_ptr<Decoder> decoder() const {
    return attention.decoder(shape.batch, shape.kv_len, kv_heads);
  }
  // x as make_inputs() draws them, with keys and values of kv_heads heads. Another draw than that
  // of `seed` where rounding would decide what is kept.
  Inputs inputs(uint64_t seed, double scale, const DecodeSteps& steps) const;
  // The answers of the steps, [batch, heads, len, head_dim]; other rows are zeros.
  Tensor output(const Inputs& x, const DecodeSteps& steps) const;
  ReferenceInputs reference_inputs(const Inputs& x) const;  // with keys repeated
};

// Decodes values that name their position, so that the weights of each step show what it sees.
void compare_kept(const ForgettingCase& c, Verdict& verdict);

}  // namespace attn
