// Reordering of positions into groups, so that keys a stride apart become neighbours, which the
// tiled kernels can read. One copy in each direction.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor/tensor.h"
#include "variants/softmax/band.h"

namespace attn {

// Arrays that attention gathers at once: q, k, v and the output; in the backward the gradients too.
inline constexpr int64_t kForwardArrays = 4, kBackwardArrays = 8;

struct Regroup {
  int64_t len = 0;     // positions of the sequence
  int64_t groups = 0;  // of each head
  int64_t rows = 0;    // positions of a group; the last ones may be empty
  IndexList from;      // [groups · rows]: original position; -1: empty

  // Appends the number of positions below `length` of each group.
  void append_sizes(int64_t length, IndexList& sizes) const;

  // x [batch, heads, len, ...] -> [which.size(), 1, rows, ...]. `which` selects from all
  // batch·heads·groups groups. Empty positions are set to `empty`.
  Tensor gather(const Tensor& x, Span which, real empty = 0) const;
  // The inverse: writes to x, or adds to it.
  void scatter(const Tensor& grouped, Span which, const Tensor& x) const;
  void scatter_add(const Tensor& grouped, Span which, const Tensor& x) const;
  // The number of groups, for all threads together, that fit in the second-level cache if `arrays`
  // arrays of `width` numbers a position are gathered.
  int64_t chunk(int64_t arrays, int64_t width) const;
};

// Calls visit(span) for consecutive parts of `groups` of at most `each` groups.
template <class Visit>
void in_chunks(Span groups, int64_t each, const Visit& visit) {
  for (int64_t g = groups.begin; g < groups.end; g += each)
    visit(Span{g, std::min(g + each, groups.end)});
}

// Group g has the positions that are g modulo `stride`, ascending.
Regroup residues(int64_t len, int64_t stride);
// One group of the given positions, ascending.
Regroup selection(int64_t len, IndexList positions);

}  // namespace attn
