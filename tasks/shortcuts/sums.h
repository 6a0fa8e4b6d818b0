// Features that are sums of the inputs: over all positions, over segments of positions, or over the
// neighbours of a position. For linear predictors.
#pragma once

#include <vector>

#include "tasks/shortcuts/selection.h"

namespace attn {

// For values: the sum of each channel over all positions, and, with up to 64 channels, the sum of
// the products of each pair of channels. For tokens: the count of each id modulo 1024.
// O(length · channels²).
SampleFeatures whole_sums(const TaskShape& shape);

// Mean squared errors of ridge regressions, for TaskShape::real: linear_error() on the inputs,
// where neighbouring positions are summed if there are more than 1024 numbers, and
// whole_sums_error() on whole_sums().
double linear_error(const TaskShape& shape, const std::vector<Example>& train,
                    const std::vector<Example>& test);
double whole_sums_error(const TaskShape& shape, const std::vector<Example>& train,
                        const std::vector<Example>& test);

// For a label per position of a task with edges and tokens: the token of the position, the count of
// each token among its neighbours without itself, and the count of each pair of both.
void add_neighbours(const Sample& sample, FeatureRow& row);

}  // namespace attn
