// n-gram predictors of the next label, for TaskShape::bits: fitted on training examples, or on the
// part of the sequence that comes before the label.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

inline constexpr size_t kGramOrders = 6;  // of 1 to 6 tokens, the label included
inline constexpr size_t kMixedOrder = 5;  // of training, where it is mixed with that of the context

// Counts of labels behind the last 0 to 5 tokens. Probabilities are interpolated after Witten and
// Bell 1991 (method C): behind a context that was seen c times, with t different labels,
//   p(label) = (count of the label + t · p(label behind a token less)) / (c + t),
// behind one that was not seen, p behind a token less, and behind no token at all the uniform 1 /
// classes takes the place of that. They sum to 1. A context that the sequence is too short for is
// replaced by the longest there is. Adding and asking cost 20 look-ups each.
class NGrams {
 public:
  explicit NGrams(int64_t classes) : classes_(static_cast<double>(classes)) { clear(); }
  void clear();
  // `before`: the tokens up to and with that of the label's position, of which the last ones count.
  void add(std::span<const int32_t> before, int32_t label);
  // By order: that of n tokens at n - 1.
  std::array<double, kGramOrders> probabilities(std::span<const int32_t> before,
                                                int32_t label) const;

 private:
  // Counts by hashes of 64 bits: two of 10 million patterns are taken for one with a probability of
  // 3e-6.
  class Counts {
   public:
    void clear();
    int32_t add(uint64_t hash);  // the count before
    int32_t of(uint64_t hash) const { return counts_[place_of(hash)]; }

   private:
    size_t place_of(uint64_t hash) const;
    void grow();
    std::vector<uint64_t> hashes_;
    std::vector<int32_t> counts_;  // 0: the place is free
    size_t used_ = 0;
  };

  double classes_;
  Counts counts_;
};

// The mean bits of the test labels: "label frequencies", fitted on training examples, which is a
// constant; "n-gram of N" from 2 on, fitted on them too; "n-gram of N in context" from 1 on, fitted
// on what the sequence holds before the label; and nine parts of "n-gram of 5" with one of "n-gram
// of 6 in context", which knows the names that a text repeats. Of training, the first 2^22 labels
// are looked at. 2^20 labels take about two seconds.
std::vector<Shortcut> gram_shortcuts(const TaskShape& shape, const std::vector<Example>& train,
                                     const std::vector<Example>& test);

}  // namespace attn
