// Ridge regression on sparse features: standardised on the training examples, its strength chosen
// on the last fifth of them. The same score on every platform. O(examples·width² + width³).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

// An example's features that are not 0; each index at most once.
using Row = std::vector<std::pair<int32_t, float>>;

struct Rows {
  std::vector<Row> rows{};
  std::vector<int32_t> labels{};  // one a row, in [0, classes)
  std::vector<float> wanted{};    // or a number to predict a row
};

struct RidgeScore {
  double held_out = 0;  // accuracy on the last fifth of the training rows, fitted on the others
  double test = 0;      // accuracy on the test rows, fitted on all training rows; 0 without any
};

// How many of `count` training rows come before the held-out ones.
inline size_t fitted_part(size_t count) { return count - count / 5; }

// One-hot regression, argmax, ties to the smallest class. `width` is the number of features.
RidgeScore ridge_score(const Rows& train, const Rows& test, size_t width, size_t classes);

// Mean squared error on the test rows of a regression on `wanted`, fitted on all training rows.
double ridge_error(const Rows& train, const Rows& test, size_t width);

}  // namespace attn
