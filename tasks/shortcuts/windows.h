// Shortcuts that read kWindow consecutive positions: at the best of several places for a label per
// sequence, around the position for a label per position.
#pragma once

#include <vector>

#include "tasks/shortcuts/selection.h"

namespace attn {

// The best of 16 windows, which are spread evenly over each sequence; training examples select it.
// Of two documents the windows are at the same place. A linear classifier on the tokens, pairs and
// triples of consecutive tokens by place, or on the real values and, if they fit kWideFeatures,
// their products. O(examples · 256²).
double best_window_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                         const TaskShape& shape);

// For a label per position. The window is the kWindow positions that end at the position, or, if
// the task is not causal, the 8 before, the position and the 7 after. The best, on training
// examples, of:
// - a table from the token k positions before to its most frequent label;
// - the token k positions before;
// - the token after the latest token that equals the token of the position, or else the token k
//   positions before;
// - with up to 64 classes, a linear classifier.
// O(labels · kWindow²).
double window_around_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                           const TaskShape& shape);

// For a label per position: a linear classifier on the values of that position and, if they fit
// kWideFeatures, their products.
double values_there_score(const std::vector<Sample>& train, const std::vector<Sample>& test,
                          const TaskShape& shape);

}  // namespace attn
