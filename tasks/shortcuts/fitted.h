// Predictors without attention, fitted on training examples and scored on test examples: what a
// task's `shortcuts` are made of. Integer counts and + - * / sqrt in a fixed order: the same score
// on every platform.
#pragma once

#include <functional>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

// Accuracy of "the label that training showed most often under the same key". Unseen keys fall back
// on the majority class; ties go to the smallest label. `key` sees an example and the index of a
// scored entry of its target.
double lookup_score(const std::vector<Example>& train, const std::vector<Example>& test,
                    const std::function<int64_t(const Example&, size_t position)>& key);

// Exact matches of "the output sequence that training showed most often"; of several the smallest.
double common_output_score(const std::vector<Example>& train, const std::vector<Example>& test);

// Mean squared error of "the mean of the training answers", of examples with a number to predict.
double mean_answer_error(const std::vector<Example>& train, const std::vector<Example>& test);

// The pictures of a task on at most `most` × `most` squares, as the sum of grey levels (white is 1)
// of each: values for linear_score.
std::vector<Example> reduced_pictures(const Task& task, const std::vector<Example>& examples,
                                      int64_t most);

// Accuracy of a linear classifier on `values` (one label a sequence, all of one length p): ridge
// regression on one-hot labels, argmax. O(examples·p² + p³) time, 8·p² bytes.
double linear_score(const std::vector<Example>& train, const std::vector<Example>& test,
                    int64_t classes);

}  // namespace attn
