// Positions of a sequence brought together in groups, so that a pattern of keys that lie apart
// becomes one of neighbours, which the fast kernels read. A copy each way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/tensor.h"
#include "variants/softmax/band.h"

namespace attn {

// Gathered at once by attention: q, k, v and the output; backward, the gradients too.
inline constexpr int64_t kForwardArrays = 4, kBackwardArrays = 8;

struct Regroup {
  int64_t len = 0;     // positions of the sequence
  int64_t groups = 0;  // of each head
  int64_t rows = 0;    // positions of a group, the last of which may be empty
  IndexList from;      // [groups · rows]: where each was, -1 for an empty one

  // Appends, for each group, how many positions lie before `length`.
  void append_sizes(int64_t length, IndexList& sizes) const;

  // x [batch, heads, len, ...] -> [groups, 1, rows, ...]: the groups `which` of the batch·heads·
  // groups of all heads; empty positions hold `empty`.
  Tensor take(const Tensor& x, Span which, real empty = 0) const;
  // The inverse, into x or added to it.
  void put(const Tensor& grouped, Span which, const Tensor& x) const;
  void add_back(const Tensor& grouped, Span which, const Tensor& x) const;
  // So many groups at a time, for all threads together, stay in the second-level cache when
  // `arrays` of `width` numbers a position are gathered.
  int64_t chunk(int64_t arrays, int64_t width) const;
};

template <class Visit>
void in_chunks(Span groups, int64_t each, const Visit& visit) {
  for (int64_t g = groups.begin; g < groups.end; g += each)
    visit(Span{g, std::min(g + each, groups.end)});
}

// Group g holds the positions equal to g modulo `stride`, ascending.
Regroup residues(int64_t len, int64_t stride);
// One group of some positions, ascending.
Regroup selection(int64_t len, IndexList positions);

}  // namespace attn
