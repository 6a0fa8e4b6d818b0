// The end of a paper's layer as one pass over its rows: skip, norm and gate.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"

namespace attn {

struct GatedNorm {
  // x + skip ⊙ skipped: rows as x, and [width]. Undefined: no skip.
  Var skipped = {}, skip = {};

  // Of each `segment` numbers of a row (0: of the whole row): over their root mean square, or less
  // their mean and over their deviation, both of √(mean + epsilon).
  enum class Norm { none, rms, layer };
  Norm norm = Norm::none;
  int64_t segment = 0;
  double epsilon = 1e-5;
  Var gain = {}, shift = {};  // [segment] or [width]; undefined: 1 and 0

  // Times silu or the sigmoid of `gate`, rows as x.
  enum class Activation { none, silu, sigmoid };
  Activation activation = Activation::none;
  Var gate = {};
  bool gate_first = false;  // before the norm
};

// x [.., width] -> the same shape. Reads each input once, forward and backward. A wrong shape is an
// Error.
Var gated_norm(const Var& x, const GatedNorm& by);

}  // namespace attn
