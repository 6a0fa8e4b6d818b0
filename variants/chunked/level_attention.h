// Linear attention with decay whose past is read in levels: with level(i, j) the number of binary
// digits of i xor j, that is 0 for j = i and else 1 plus the highest digit in which they differ,
//   o_i = Σ_{j<=i} w_i[level(i, j)]·exp(g_{j+1} + … + g_i)·(q_i·k_j)·v_j
// Level l > 0 is a block of 2^(l-1) positions: a Fenwick tree. Guo et al. 2025, arXiv:2506.04761,
// section 3. About 2·n·m·d + n·log2(n/chunk)·m·d FLOPs for states of whole chunks, one for each
// chunk, and n·chunk·(m + d) inside chunks; memory n·d, and m·d for each level.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/chunked/chunked_problem.h"

namespace attn {

struct LevelInputs {
  Var q, k;       // [batch, heads, len, key_dim]
  Var v;          // [batch, heads, len, dim]
  Var log_decay;  // [batch, heads, len, 1], at most 0
  Var weights;    // w [batch, heads, len, levels]
};

// The output [batch, heads, len, dim]; differentiable by all inputs. `chunk` is a power of two; the
// result is the same up to rounding. Error where len exceeds 2^(levels - 1). Padding is not known:
// it must hold zeros in k, v and log_decay.
Var level_attention(const LevelInputs& inputs, int64_t chunk = 64);

// Of heads of head_dim columns of q, k and v.
Cost level_cost(const AttentionShape& shape, int64_t levels);

// So many levels are enough for `len` positions.
inline int64_t levels_of(int64_t len) {
  return len > 1 ? std::bit_width(static_cast<uint64_t>(len - 1)) + 1 : 1;
}

// Of decoding: the states, and for each the logarithm of what is left of it.
inline int64_t level_state_bytes(int64_t heads, int64_t levels, int64_t key_dim, int64_t dim) {
  return heads * levels *
         (key_dim * dim * static_cast<int64_t>(sizeof(real)) +
          static_cast<int64_t>(sizeof(double)));
}

// Internal, of level_attention.cc and level_backward.cc.
struct LevelProblem {
  ChunkedProblem tiles;  // a tile is a chunk
  int64_t levels = 1;

  int64_t chunks() const { return tiles.chunks(tiles.len); }
  int64_t rows(int64_t chunk) const {
    return std::min(tiles.chunk, tiles.len - chunk * tiles.chunk);
  }
  // Blocks of whole chunks that are read at one time, at most: levels above those of a chunk.
  int64_t blocks() const { return levels_of(chunks()) - 1; }
  // The level of the block of 2^z chunks.
  int64_t level(int64_t z) const { return std::bit_width(static_cast<uint64_t>(tiles.chunk)) + z; }
  // After chunk c, the block that ends with it has 2^z chunks; a longer block contains it later.
  static int64_t block_after(int64_t chunk) {
    return std::countr_zero(static_cast<uint64_t>(chunk + 1));
  }
  // f(z, last) of each block that the rows of a chunk read: 2^z chunks up to chunk `last`.
  template <class F>
  static void each_block(int64_t chunk, F&& f) {
    for (int64_t z = 0; chunk >> z; ++z)
      if (chunk >> z & 1) f(z, (chunk >> z << z) - 1);
  }
};

// f(level, begin, end) of each level of row i of a chunk: columns [begin, end).
template <class F>
void each_level(int64_t i, F&& f) {
  f(0, i, i + 1);
  for (int64_t z = 0; i >> z; ++z)
    if (i >> z & 1) f(z + 1, ((i >> z) - 1) << z, i >> z << z);
}

struct LevelSaved {
  ChunkedSaved rows;  // states [batch·heads, chunks, m, d]: of the block that ends with the chunk
  Tensor weights;
};

// The indices of `grads`; an undefined tensor is not needed.
enum LevelInput : uint8_t { kLevelQ, kLevelK, kLevelV, kLevelDecay, kLevelWeights };
void level_backward(const LevelProblem& problem, const LevelSaved& saved, const Tensor& grad_out,
                    std::span<Tensor> grads);

}  // namespace attn
