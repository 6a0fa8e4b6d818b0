// The ladder of shortcuts that every task is measured against, whatever it is: from a constant and
// the first token to everything that short windows see. Fitted on training examples, scored on test
// examples.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

// A constant comes first: "majority" (class, or output sequence), or "mean of the answers".
// Label per sequence: first token or value; length, where it varies; bag of tokens or values; bag
// of n-grams to 4; window of 16 (best); window of 16 (pooled); of two documents also their overlap.
// Of several channels a bag holds sums over the positions, of numbers and of products of two.
// Label per position: position; token there or values there; bag of neighbours, where the example
// has edges; window of 16 (best). Where all labels are read from the last position's vector:
// position; window of 16 (last).
// A number to predict, by its mean squared error: linear in the inputs; bag of values or tokens.
// Output sequences: nothing more. More than 64 classes: look-ups and copies only. All rungs are the
// same on every platform. At 10000 examples of length 1024 in all a few seconds of one core.
std::vector<Shortcut> ladder(const TaskShape& shape, const std::vector<Example>& train,
                             const std::vector<Example>& test);

// How many training examples shortcuts are fitted on when `wanted` are there: as many as hold 2^24
// tokens or numbers, at least 500. Keeps the longest tasks within minutes.
int64_t ladder_examples(const TaskShape& shape, int64_t wanted);

}  // namespace attn
