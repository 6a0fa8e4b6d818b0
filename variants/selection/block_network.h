// The learned compression of native sparse attention: each block of rows becomes one row by a
// network that all heads share, φ(x) = gelu((x + P)·U)·D of its rows side by side. Yuan et al.
// 2025, arXiv:2502.11089, eq. 7. For blocks of l at a stride of s, 2·n·hidden·d·(l/s + 1/s) FLOPs;
// memory n·hidden/s.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"
#include "variants/selection/compressed_attention.h"

namespace attn {

struct BlockNetwork {
  Var position;  // P [block, dim]
  Var up, down;  // U [block·dim, hidden], D [hidden, dim]

  bool defined() const { return up.defined(); }
  int64_t hidden() const { return up.dim(1); }
};

// x [batch, heads, len, dim], finite in padding too -> [batch, heads, rows, dim], a row for each
// block that lies within len; a row of zeros where there is none.
Var network_rows(const CompressedBlocks& of, const BlockNetwork& by, const Var& x);

// One block of rows [block, dim] -> [dim]; `work` has network_reals() numbers.
void network_row(const BlockNetwork& by, const real* rows, real* work, real* to);
int64_t network_reals(const BlockNetwork& by);
double network_row_flops(const BlockNetwork& by);
// Of network_rows() for `heads` heads in all; the backward takes twice as many.
double network_flops(const CompressedBlocks& of, const BlockNetwork& by, int64_t heads,
                     int64_t len);

}  // namespace attn
