// Features that count the short patterns of a sequence: tokens, n-grams, and pairs of tokens a few
// positions apart. For two documents, features that compare the patterns of both.
#pragma once

#include <vector>

#include "tasks/shortcuts/selection.h"

namespace attn {

inline constexpr int64_t kWindow = 16;  // positions of a "window" in the names of shortcuts

// Maps inputs to symbols. A token is its own symbol. A real value is rounded down to one of
// `levels` equal steps between the least and the greatest value of the training examples.
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
  tokens,  // single symbols
  grams,   // n-grams of one to four symbols
  local,   // single symbols, and pairs at most kWindow - 1 apart, as in a convolution of kWindow
};

// Two features per pattern: its count, and 1 if it occurs. For two documents: the product and the
// absolute difference of both counts. Patterns are hashed. O(length) per sample, times kWindow for
// `local`.
SampleFeatures pattern_counts(const Symbols& symbols, Patterns patterns);

// Similarity of two documents: of their n-grams of 1, 2, 3, 4, 8 and 16 symbols, of their lengths,
// and of their first and last symbols. O(length) per sample.
SampleFeatures overlap(const Symbols& symbols);

}  // namespace attn
