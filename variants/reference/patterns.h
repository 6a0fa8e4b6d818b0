// Who sees whom in the patterns of the papers, as predicates on positions (query i, key j) of one
// sequence, without padding and causality. Each is the paper's definition, word by word.
#pragma once

#include <cstdlib>
#include <functional>

#include "variants/reference/attention.h"

namespace oracle {

using Pattern = std::function<bool(Index i, Index j)>;

// Liu et al. 2018, section 4.2.4: blocks, and here so many neighbours.
inline Pattern blocks(Index size, Index back, Index ahead) {
  return [=](Index i, Index j) {
    const Index away = j / size - i / size;
    return -back <= away && away <= ahead;
  };
}

// Long Range Arena's "blocks" of `length` positions: reshaped to [size, groups] after rounding up,
// by a whole block where nothing is left over; attention runs along the first of the two.
inline Pattern reshaped_blocks(Index size, Index length) {
  const Index padded = length + size - length % size, groups = padded / size;
  return [=](Index i, Index j) { return i % groups == j % groups; };
}

// Beltagy et al. 2020, section 3.1: a window, and global positions that see and are seen.
inline Pattern window_and_global(Index before, Index after, Index global) {
  return [=](Index i, Index j) {
    return i < global || j < global || (j >= i - before && j <= i + after);
  };
}

// Child et al. 2019, section 4.2: A(1) ∪ A(2) of strided and of fixed attention, both directions.
inline Pattern strided(Index stride) {
  return [=](Index i, Index j) { return std::abs(i - j) <= stride || (i - j) % stride == 0; };
}
inline Pattern fixed(Index stride, Index summary) {
  return
      [=](Index i, Index j) { return i / stride == j / stride || j % stride >= stride - summary; };
}
// Long Range Arena's own fixed pattern, which is causal whatever the model is.
inline Pattern arena_fixed(Index stride, Index summary) {
  return
      [=](Index i, Index j) { return j <= i && (fixed(stride, summary)(i, j) || j % stride == 0); };
}

}  // namespace oracle
