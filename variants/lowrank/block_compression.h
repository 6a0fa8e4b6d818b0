// Blocks of neighbouring rows made one row each by a learned matrix: a convolution whose stride is
// its kernel. 2·len·dim² FLOPs a head.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"

namespace attn {

struct Compression {
  Var weight;    // [heads, stride, dim, dim]: row t of a block is multiplied by weight[h, t]
  Var bias;      // [heads, dim]; undefined: none
  Var null_row;  // [heads, dim], a learned row before all blocks; undefined: none

  int64_t heads() const { return weight.dim(0); }
  int64_t stride() const { return weight.dim(1); }
  int64_t dim() const { return weight.dim(3); }
};

inline int64_t compressed_blocks(int64_t len, int64_t stride) {
  return (len + stride - 1) / stride;
}

// x [batch, heads, len, dim] -> [batch, heads, nulls + blocks, dim]: the null row, if there is one,
// then bias + Σ_t x[block·stride + t]·weight[t] of each block. Rows at or beyond lengths[b] (empty:
// all are valid) are never read and count as zeros; a block without a valid row is zeros.
Var compress_blocks(const Var& x, const Compression& by, std::span<const int64_t> lengths = {});

// The workspace of a forward, over all workers.
int64_t compression_bytes(int64_t heads, int64_t len, int64_t stride, int64_t dim);

// One block of `stride` rows of a head: to [dim].
void compress_block(const Compression& by, int64_t head, const real* rows, real* to);

}  // namespace attn
