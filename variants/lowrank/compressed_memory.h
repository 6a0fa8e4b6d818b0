// Softmax attention to keys that stand for blocks of positions, and decoding by it. A causal query
// sees the blocks that have ended: 4·d FLOPs a pair of a query and a block.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/decoder.h"
#include "variants/lowrank/block_compression.h"
#include "variants/softmax/softmax.h"

namespace attn {

struct CompressedMemory {
  int64_t stride = 1;  // positions of a block
  int64_t nulls = 0;   // keys before the blocks that every query sees
  bool causal = false;
  std::vector<int64_t> kv_lengths = {};  // keys to see: nulls and blocks; empty: all
};

// q [batch, heads, q_len, dim], k and v [batch, heads, nulls + blocks, dim]. Causal: query t sees
// the nulls and the blocks whose last position is at most t.
Var compressed_memory_attention(const Var& q, const Var& k, const Var& v,
                                const CompressedMemory& how);
SoftmaxResult compressed_memory_with_log_sum(const Var& q, const Var& k, const Var& v,
                                             const CompressedMemory& how);

// Executed FLOPs and the peak of a forward, its output included; shape.kv_len counts positions.
struct CompressedMemoryWork {
  double flops = 0, backward_flops = 0, peak_bytes = 0;
};
CompressedMemoryWork compressed_memory_work(const AttentionShape& shape,
                                            const CompressedMemory& how);

// The state is a row of keys and one of values a block, and the rows since the last block.
// position[2] must be 1.
std::unique_ptr<Decoder> compressed_memory_decoder(const Shape& position, int64_t capacity,
                                                   const Compression& keys,
                                                   const Compression& values);
double compressed_memory_bytes(const AttentionShape& shape, int64_t stride, int64_t nulls);

}  // namespace attn
