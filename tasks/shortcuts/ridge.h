// Ridge regression on sparse features. SampleFeatures are standardised on the training examples;
// the last fifth of the training examples selects the strength of the penalty. Scores are the same
// on every platform. O(examples·width² + width³).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

// The non-zero features of an example, each index at most once.
using FeatureRow = std::vector<std::pair<int32_t, float>>;

struct Rows {
  std::vector<FeatureRow> rows{};
  std::vector<int32_t> labels{};  // one per row, in [0, classes)
  std::vector<float> wanted{};    // or one number to predict per row
};

struct RidgeScore {
  double held_out = 0;  // accuracy on the last fifth of the training rows, fitted on the others
  double test = 0;  // accuracy on the test rows, fitted on all training rows; 0 without test rows
};

// The number of training rows before the held-out rows, of `count` in all.
inline size_t fitted_part(size_t count) { return count - count / 5; }

// Regression on one-hot labels, then argmax; ties go to the smallest class. `width` is the number
// of features.
RidgeScore ridge_score(const Rows& train, const Rows& test, size_t width, size_t classes);

// Mean squared error on the test rows of a regression on `wanted` that is fitted on all training
// rows.
double ridge_error(const Rows& train, const Rows& test, size_t width);

}  // namespace attn
