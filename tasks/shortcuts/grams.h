// A sequence as symbols, and what is left of it when only the numbers of its short patterns are
// kept: tokens, n-grams, pairs a few places apart. Of two documents, what their patterns share.
#pragma once

#include <vector>

#include "tasks/shortcuts/selection.h"

namespace attn {

inline constexpr int64_t kWindow = 16;  // what "window" means in the names of shortcuts

// Tokens as they are; real values in `levels` equal steps between the least and the greatest of
// the training examples.
class Symbols {
 public:
  Symbols(const std::vector<Sample>& train, int levels);
  std::vector<int32_t> of(const Example& example) const;
  int32_t of(float value) const;

 private:
  float low_ = 0, high_ = 0;
  int levels_;
};

enum class Patterns {
  tokens,  // single ones
  grams,   // runs of one to four
  local,   // single ones, and pairs up to kWindow - 1 apart: what a convolution of kWindow sees
};

// How often each pattern occurs, and whether; of two documents the product and the difference of
// their numbers. Patterns are hashed. O(length) a sample, times kWindow for `local`.
Features pattern_counts(const Symbols& symbols, Patterns patterns);

// Of two documents: how alike they are in runs of 1, 2, 3, 4, 8 and 16 symbols, in length, and in
// their first and last symbols. O(length) a sample.
Features overlap(const Symbols& symbols);

}  // namespace attn
