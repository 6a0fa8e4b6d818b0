// Base of the tasks in which a model recalls tokens: a causal sequence of tokens with labels at
// some positions, each label a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tasks/api/task.h"

namespace attn::recall {

// Needs the parameter `length`, the longest sequence.
class RecallTask : public Task {
 protected:
  // Token ids are in [0, vocab) and labels in [0, classes).
  RecallTask(const Params& params, int64_t vocab, int64_t classes);
  int64_t length() const { return shape_.length; }

  // Leaves every position of [0, length) without a label.
  void clear_labels(Example& example) const;
  // Makes the token at `source` the label of `position`, and position - source its distance.
  static void set_label(Example& example, size_t position, size_t source);

 private:
  TaskShape do_shape() const final { return shape_; }

  TaskShape shape_;
};

// Sequence lengths between the parameters `min_length` (0: as `length`) and `length`.
class LengthRange {
 public:
  // Error when `min_length` is neither 0 nor from `shortest` to `length`. `task` names the task.
  LengthRange(const Params& params, std::string_view task, int64_t shortest);
  int64_t least() const { return least_; }
  // A uniform length, both ends included. Uses no random bits when there is only one length.
  int64_t draw(Rng& random) const;

 private:
  int64_t least_, most_;
};

// The distances of the labels of one example.
struct Gaps {
  double labels = 0, mean = 0, least = 0, most = 0;
};
Gaps gaps_of(const Example& example);  // O(length); the example has at least one label

}  // namespace attn::recall
