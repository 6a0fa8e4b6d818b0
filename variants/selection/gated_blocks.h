// The compressed rows of compressed sparse attention: each block of `stride` positions becomes one
// key and one value, RMSNorm(Σ_s w_s ⊙ x_s), with a softmax w over its positions in each channel.
// DeepSeek-AI 2026, DeepSeek-V4, section 2.3.1, eqs. 9-12, and section 2.3.2. With overlap the sum
// goes over the block before too, by logits of its own. 5·n·d FLOPs a head, with overlap twice
// that; memory 2·n/stride·d.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"

namespace attn {

struct BlockGates {
  int64_t stride = 4;
  bool overlap = true;
  Var position;  // [heads, slots, d], added to the logits; those of the block before last
  Var key_gain, value_gain;  // [heads, d], of the norms

  int64_t heads() const { return position.dim(0); }
  int64_t dim() const { return position.dim(2); }
  int64_t parts() const { return overlap ? 2 : 1; }
  int64_t slots() const { return parts() * stride; }
  int64_t width() const { return parts() * dim(); }  // of the logits of a position
};

// k, v [batch, heads, len, d] and logits [.., parts·d], those of the position's own block first ->
// [batch, heads, max(1, len/stride), 2·d], the key and the value of each block that lies within
// lengths[b] (empty: len); other rows are zeros, and positions outside are not read.
Var gated_blocks(const BlockGates& by, const Var& k, const Var& v, const Var& logits,
                 std::span<const int64_t> lengths = {});

// The positions of one block, and those of the block before it; null: there is none.
struct BlockSlots {
  const real *k, *v, *logits;  // [stride, d], [stride, d], [stride, parts·d]
  const real *earlier_k = nullptr, *earlier_v = nullptr, *earlier_logits = nullptr;
};
// One row of a head: key and value to [2·d]. work: gated_row_reals() numbers.
void gated_row(const BlockGates& by, int64_t head, const BlockSlots& slots, real* work, real* to);
int64_t gated_row_reals(const BlockGates& by);

// Of `heads` heads and one forward; the backward takes twice as many.
double gated_block_flops(const BlockGates& by, int64_t heads, int64_t len);

}  // namespace attn
