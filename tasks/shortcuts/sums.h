// Inputs as a few numbers added up: over all positions, over stretches of them, over what a
// position sees. For linear predictors that know nothing of where things stand.
#pragma once

#include <vector>

#include "tasks/shortcuts/selection.h"

namespace attn {

// Per channel the sum over all positions, and of each pair of channels the sum of their products
// (up to 64 channels). Of tokens: how often each occurs, ids modulo 1024. O(length · channels²).
Features whole_sums(const TaskShape& shape);

// Mean squared errors of ridge regressions on the inputs as they are (of more than 1024 numbers:
// neighbouring positions added up until they fit) and on whole_sums; see TaskShape::real.
double linear_error(const TaskShape& shape, const std::vector<Example>& train,
                    const std::vector<Example>& test);
double whole_sums_error(const TaskShape& shape, const std::vector<Example>& train,
                        const std::vector<Example>& test);

// For a label per position of a task with edges and tokens: the token there, how often each token
// stands where the position sees, itself apart, and how often beside the token there.
void add_neighbours(const Sample& sample, Row& row);

}  // namespace attn
