// Positions of a sequence brought together in groups, so that a pattern of keys that lie apart
// becomes one of neighbours, which the fast kernels read. A copy each way.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace attn {

struct Regroup {
  int64_t len = 0;            // positions of the sequence
  int64_t groups = 0;         // of each head
  int64_t rows = 0;           // positions of a group, the last of which may be empty
  std::vector<int64_t> from;  // [groups · rows]: where each was, -1 for an empty one
  std::vector<int64_t> sizes(int64_t length) const;  // [groups]: positions before `length`

  // x [batch, heads, len, ...] -> [batch·heads·groups, 1, rows, ...]; empty positions hold `empty`.
  Tensor take(const Tensor& x, real empty = 0) const;
  // The inverse, added to x.
  void add_back(const Tensor& grouped, const Tensor& x) const;
};

// Group g holds the positions equal to g modulo `stride`, ascending.
Regroup residues(int64_t len, int64_t stride);
// One group of some positions, ascending.
Regroup selection(int64_t len, std::vector<int64_t> positions);

}  // namespace attn
