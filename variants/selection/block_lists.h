// Blocks of keys that queries choose beside their own: as a list of blocks for each query, and,
// what kernels work on, as a list of queries for each block. Time and memory n·most a head.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "core/base/memory.h"
#include "core/base/span.h"
#include "variants/softmax/softmax.h"

namespace attn {

// Of queries: logits are divided by √dim, and in units of log2.
inline real logit_factor(int64_t dim) {
  return static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
}

// Self-attention of `len` positions in blocks of `block`; batch · heads heads.
struct BlockGrid {
  int64_t batch = 0, heads_of_entry = 0, len = 0, dim = 0, block = 1;
  IndexList lengths = {};  // valid keys of each batch entry; empty: all

  int64_t heads() const { return batch * heads_of_entry; }
  int64_t blocks() const { return (len + block - 1) / block; }
  int64_t length(int64_t head) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(head / heads_of_entry)];
  }
  Span queries(int64_t b) const { return {b * block, std::min(len, (b + 1) * block)}; }
  // Keys of a block that are not padding.
  int64_t keys(int64_t head, int64_t b) const {
    return std::clamp<int64_t>(length(head) - b * block, 0, block);
  }
  // Blocks before the query's own that hold a key.
  int64_t earlier(int64_t head, int64_t i) const {
    return std::min(i / block, (length(head) + block - 1) / block);
  }
};

// The blocks of each query, but its own: `most`, or all earlier ones if they are fewer; ascending.
class ChosenBlocks {
 public:
  ChosenBlocks(const BlockGrid& grid, int64_t most)
      : grid_(grid), most_(std::min(most, std::max<int64_t>(0, grid.blocks() - 1))) {
    block_ = Block(static_cast<size_t>(bytes(grid, most)), Purpose::workspace);
  }
  int64_t most() const { return most_; }
  int64_t count(int64_t head, int64_t i) const { return std::min(most_, grid_.earlier(head, i)); }
  int32_t* of(int64_t head, int64_t i) const {
    return static_cast<int32_t*>(block_.data()) + (head * grid_.len + i) * most_;
  }
  const BlockGrid& grid() const { return grid_; }
  static int64_t bytes(const BlockGrid& grid, int64_t most) {
    const int64_t each = std::min(most, std::max<int64_t>(0, grid.blocks() - 1));
    return grid.heads() * grid.len * each * static_cast<int64_t>(sizeof(int32_t));
  }

 private:
  BlockGrid grid_;
  int64_t most_;
  Block block_;
};

// The queries that chose each block, ascending.
class BlockQueries {
 public:
  explicit BlockQueries(const ChosenBlocks& chosen);

  std::span<const int32_t> of(int64_t head, int64_t b) const {
    const int32_t* const begin = begins(head);
    return {queries(head) + begin[b], queries(head) + begin[b + 1]};
  }
  // Those of them within [range.begin, range.end).
  std::span<const int32_t> of(int64_t head, int64_t b, Span range) const {
    const std::span<const int32_t> all = of(head, b);
    return {std::lower_bound(all.begin(), all.end(), range.begin),
            std::lower_bound(all.begin(), all.end(), range.end)};
  }
  static int64_t bytes(const BlockGrid& grid, int64_t most) {
    return ChosenBlocks::bytes(grid, most) +
           grid.heads() * (grid.blocks() + 1) * static_cast<int64_t>(sizeof(int32_t));
  }

 private:
  int32_t* begins(int64_t head) const {
    return static_cast<int32_t*>(block_.data()) + head * (blocks_ + 1);
  }
  int32_t* queries(int64_t head) const {
    return static_cast<int32_t*>(block_.data()) + heads_ * (blocks_ + 1) + head * each_;
  }

  int64_t heads_, blocks_, each_;  // each_: room for the queries of all blocks of a head
  Block block_;
};

// The means of the valid rows of each block, x [heads, len, dim] -> to [heads, blocks, dim]; zeros
// for a block of padding. Rows are added in their order, as decoders add them.
void block_means(const BlockGrid& grid, const real* x, real* to);
// Adds the gradient of block_means to grad_x.
void block_means_backward(const BlockGrid& grid, const real* grad_means, real* grad_x);

}  // namespace attn
