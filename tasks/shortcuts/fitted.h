// Predictors without attention for the shortcuts of a task. Each is fitted on training examples and
// scored on test examples. Scores are the same on every platform: they use integer counts and
// + - * / sqrt in a fixed order.
#pragma once

#include <functional>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

// Accuracy of a table from keys to their most frequent training label. A key that training does not
// have gets the majority label; ties go to the smallest label. `key` maps an example and the index
// of a label in its target to the key.
double lookup_score(const std::vector<Example>& train, const std::vector<Example>& test,
                    const std::function<int64_t(const Example&, size_t position)>& key);
// The same for other answers than the labels: answer(example, position) replaces the label.
double lookup_score(const std::vector<Example>& train, const std::vector<Example>& test,
                    const std::function<int64_t(const Example&, size_t position)>& key,
                    const std::function<int32_t(const Example&, size_t position)>& answer);

// Exact-match score of the most frequent output sequence of training, the smallest of several.
double common_output_score(const std::vector<Example>& train, const std::vector<Example>& test);

// Mean squared error of the mean training answer, for examples with a number to predict.
double mean_answer_error(const std::vector<Example>& train, const std::vector<Example>& test);

// The pictures of a task reduced to at most `most` × `most` squares. Each value is the sum of the
// grey levels of a square, where white is 1. Inputs for linear_score.
std::vector<Example> reduced_pictures(const Task& task, const std::vector<Example>& examples,
                                      int64_t most);

// Accuracy of a linear classifier on `values`: ridge regression on one-hot labels, then argmax. All
// examples have one label and the same number p of values. O(examples·p² + p³) time, 8·p² bytes.
double linear_score(const std::vector<Example>& train, const std::vector<Example>& test,
                    int64_t classes);

}  // namespace attn
