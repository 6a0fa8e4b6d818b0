// What can be read off kWindow tokens in a row and nothing else: at the best of several places for
// a label of the sequence, before the label for one of a position.
#pragma once

#include <vector>

#include "tasks/shortcuts/selection.h"

namespace attn {

// Best of 16 windows evenly spread from the first to the last place of each sequence, chosen on
// training examples; of two documents both windows at the same place. Linear in its tokens, pairs
// and triples by place; of real values, in them and (up to 4 channels) their products. O(examples)
// times 256².
double best_window_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                         const TaskShape& shape);

// For a label per position, from the kWindow tokens that end there, or of a task that is not causal
// from the 8 before, its own and the 7 after: the best, on training examples, of "what the token k
// places before stood for", "that token itself", "the token that came after the latest token equal
// to the one there, or else the one k places before", and (up to 64 classes) the linear classifier.
// O(labels · kWindow²).
double window_around_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                           const TaskShape& shape);

// For a label per position: linear in the numbers there, and (up to 4 channels) in their products.
double values_there_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                          const TaskShape& shape);

}  // namespace attn
