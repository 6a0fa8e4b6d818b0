// A linear classifier on the features, out of very many, that tell the classes apart best: they are
// chosen on training examples, then fitted by ridge regression. What the rungs of the ladder share.
#pragma once

#include <functional>
#include <vector>

#include "tasks/shortcuts/ridge.h"

namespace attn {

// One scored label: of the whole sequence (position 0) or of a position.
struct Sample {
  const Example* example = nullptr;
  size_t position = 0;
  int32_t label() const { return example->target[position]; }
};

// Beyond so many classes, a linear classifier a class costs too much.
inline constexpr int64_t kMostClasses = 64;

// Appends the features of a sample that are not 0, each index of [0, kWideFeatures) at most once.
inline constexpr size_t kWideFeatures = size_t{1} << 16;
using Features = std::function<void(const Sample& sample, Row& row)>;

// Keeps the `width` features with the largest share of variance between the classes (ties to the
// smallest index), seen in at least three examples. O(features of all examples + width² ·
// examples).
RidgeScore selected_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                          int64_t classes, size_t width, const Features& features);

}  // namespace attn
