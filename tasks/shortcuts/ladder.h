// The shortcuts that every task is compared with, from a constant and the first token to predictors
// that read short windows. Fitted on training examples, scored on test examples.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

// The first shortcut is a constant: "majority" (a class or an output sequence), "mean of the
// answers" or "label frequencies" (TaskShape::bits). The others depend on the kind of task:
// - Label per sequence: first token or value; length, if it varies; bag of tokens or values; bag of
//   n-grams to 4; overlap, for two documents; window of 16 (best); window of 16 (pooled). With
//   several channels a bag holds sums of numbers, and of products of two, over all positions.
// - Label per position: position; token there or values there; bag of neighbours, if examples have
//   edges; window of 16 (best).
// - All labels read from the last position's vector: position; window of 16 (last).
// - A number to predict, by mean squared error: linear in the inputs; bag of values or tokens.
// - Output sequences: no others.
// - Labels that are scored in bits: n-grams of training and of the context; see ngrams.h.
// With more than 64 classes there are only look-ups and copies. Scores are the same on every
// platform. 10000 examples of length 1024 take a few seconds on one core.
std::vector<Shortcut> ladder(const TaskShape& shape, const std::vector<Example>& train,
                             const std::vector<Example>& test);

// The number of training examples to fit shortcuts on, at most `wanted`: as many as hold 2^24
// tokens or numbers, but at least 500. The limit keeps the longest tasks within minutes.
int64_t ladder_examples(const TaskShape& shape, int64_t wanted);

}  // namespace attn
