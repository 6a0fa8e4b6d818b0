// A shortcut for labels that are a permutation of a known multiset, as in copying.
#pragma once

#include <vector>

#include "tasks/api/task.h"

namespace attn {

// Accuracy of the prediction that each label is the most frequent of the labels not yet given,
// itself included; ties go to the smallest. O(labels · different labels) per example.
double remaining_score(const std::vector<Example>& examples);

}  // namespace attn
