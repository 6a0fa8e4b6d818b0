// A linear classifier on selected features. The features that separate the classes best are
// selected on training examples, then ridge regression fits a classifier to them.
#pragma once

#include <functional>
#include <vector>

#include "tasks/shortcuts/ridge.h"

namespace attn {

// One label: of the whole sequence (position 0) or of a position.
struct Sample {
  const Example* example = nullptr;
  size_t position = 0;
  int32_t label() const { return example->target[position]; }
};

// With more classes than this, linear classifiers cost too much and are left out.
inline constexpr int64_t kMostClasses = 64;

// Appends the non-zero features of a sample, each index of [0, kWideFeatures) at most once.
inline constexpr size_t kWideFeatures = size_t{1} << 16;
using SampleFeatures = std::function<void(const Sample& sample, FeatureRow& row)>;

// Score of a ridge regression on `width` features: of those that occur in at least three examples,
// the features with the largest share of variance between the classes (ties go to the smallest
// index). O(features of all examples + width² · examples).
RidgeScore selected_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                          int64_t classes, size_t width, const SampleFeatures& features);

}  // namespace attn
