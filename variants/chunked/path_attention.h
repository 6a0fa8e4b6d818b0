// Softmax attention whose queries pass a linear map for each chunk of keys that lies between: the
// engine of PaTH. Yang et al. 2025, arXiv:2505.16381, section 3. Causal. Of n positions in chunks
// of c: 2·n²·d FLOPs for pairs and n²·d²/c for the maps; memory n·(4·d + d²/c).
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

// Chunk a of a head attends to itself by the logits `near`, and to an earlier chunk b by
// q_a·P_{a-1}·…·P_{b+1}·k_bᵀ.
struct PathInputs {
  Var q;     // [heads, chunks, chunk, d]: with the maps of its own chunk, and scaled
  Var k;     // [heads, chunks, chunk, d]: with the maps of its own chunk
  Var v;     // [heads, chunks, chunk, d]
  Var maps;  // P [heads, chunks, d, d]
  Var near;  // [heads, chunks, chunk, chunk]: what stands above the diagonal is not read
};

// The output [heads, chunks, chunk, d], heads those of all batch entries. Keys from number `len`
// on, or with `lengths`, from lengths[b] on, are not seen. `chunk` must be a multiple of
// kRowMultiple, at most kPanel.
Var path_attention(const PathInputs& x, int64_t len, const std::vector<int64_t>& lengths);

// How positions are cut: whole vectors of logits, and 64 rows of a packed panel where there are as
// many.
struct PathChunks {
  explicit PathChunks(int64_t len);
  int64_t chunk, chunks;
  int64_t rows() const { return chunk * chunks; }
};

// FLOPs of the forward pass of one head.
double path_flops(const PathChunks& cut, int64_t len, int64_t dim);
// Of the variant `path`: what its products make of the gates, and path_attention().
Cost path_cost(const AttentionShape& shape);

}  // namespace attn
