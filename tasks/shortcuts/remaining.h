// What counting alone knows of an output that uses up a known multiset, as copying does.
#pragma once

#include <vector>

#include "tasks/api/task.h"

namespace attn {

// Accuracy of answering each scored label with the most frequent one among itself and the scored
// labels behind it (ties to the smallest): a bag from which every given label is taken out.
// O(labels · different labels) an example.
double remaining_score(const std::vector<Example>& examples);

}  // namespace attn
