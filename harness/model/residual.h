// The residual connection around a block; private to harness/model.
#pragma once

#include "core/ops/ops.h"

namespace attn {

// residual + dropout(block), the sum fused into the block where nothing is dropped.
template <class Block>
Var added(const Var& residual, double dropout, Rng* stream, const Block& block) {
  if (!stream || dropout == 0) return block(residual);
  return add(residual, attn::dropout(block(Var()), dropout, *stream));
}

}  // namespace attn
