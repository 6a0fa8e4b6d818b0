// Sequences of unequal lengths packed one behind the other without padding, as the cu_seqlens of
// flash-attention's varlen functions and the packing of training examples have them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/var.h"
#include "core/base/function.h"

namespace attn {

// An array of packed sequences is [positions · heads, width]: of each sequence in turn its block
// [heads, len, width], so that a sequence begins at row heads · borders[s] and nothing is between
// two. Rows of a mixer have one head.
class Packing {
 public:
  // `work`: what each sequence takes, in any unit; empty: as the square of its length. Error where
  // there is no sequence, or one without a position.
  explicit Packing(std::vector<int64_t> lengths, std::vector<double> work = {});

  const std::vector<int64_t>& lengths() const { return lengths_; }
  const std::vector<int64_t>& borders() const { return borders_; }  // cu_seqlens: 0, ..., positions
  const std::vector<double>& work() const { return work_; }
  int64_t count() const { return static_cast<int64_t>(lengths_.size()); }
  int64_t length(int64_t sequence) const { return lengths_[static_cast<size_t>(sequence)]; }
  int64_t positions() const { return borders_.back(); }
  int64_t longest() const;
  int64_t distinct() const { return distinct_; }  // how many lengths that differ
  // How many rows `packed` has for each position. Error where the number is no whole one.
  int64_t heads_of(const Tensor& packed) const;
  // The block of one sequence, [1, heads, len, width], which shares the memory of `packed`.
  Tensor block(const Tensor& packed, int64_t sequence) const;

 private:
  std::vector<int64_t> lengths_, borders_;
  int64_t distinct_ = 0;
  std::vector<double> work_;
};

// Which thread answers which sequences. The longest are answered by all threads together, one after
// the other, where one of them is more than a thread's share of what is left, or where the others
// can be shared out more evenly without it, as four equal ones to three threads; the others by one
// thread each, the longest first, to the thread that has the least so far.
struct SequenceShares {
  std::vector<int64_t> together;
  std::vector<std::vector<int64_t>> alone;  // of each thread
};
// `parts`: into how many equal ones threads split a sequence at least, such as its heads.
SequenceShares share_sequences(const std::vector<double>& work, int threads, int64_t parts);

// What may go at a time: sequences forward and backward; forward alone, where learned weights in
// common would get gradients of two at a time; nothing, and all is on the calling thread.
enum class AtATime { all, forward, nothing };

// Answers each sequence by itself: `answer` gets the blocks of `inputs`, each [1, heads, len,
// width], and returns one of as many numbers as the first. The result is packed as the first is.
// `parts`: as of share_sequences(). `has_learned`: answers need gradients even where no input does,
// for their weights. Costs a copy of the answers, and of the inputs' gradients.
Var answer_each(const Packing& packing, std::span<const Var> inputs, int64_t parts,
                AtATime at_a_time, bool has_learned,
                FunctionRef<Var(std::span<const Var> blocks)> answer);

}  // namespace attn
