// Shortcuts of the recall tasks: rules that predict a token without a look-up of its key. Each
// costs O(position) per label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tasks/api/task.h"

namespace attn::recall {

// Expected accuracy of a uniform random choice among the candidates for each label.
double random_choice_score(
    const std::vector<Example>& test,
    const std::function<std::vector<int32_t>(const Example&, size_t position)>& candidates);

// Expected accuracy of a uniform random choice among the values of the pairs, key and value, that
// are the evidence of an example.
double random_listed_value_score(const std::vector<Example>& test);

// Accuracy of a rule that predicts the label of a position.
double rule_score(const std::vector<Example>& test,
                  const std::function<int32_t(const Example&, size_t position)>& rule);

// Expected accuracy of a random choice among the tokens in [low, high] before the label, with their
// repetitions.
double random_token_score(const std::vector<Example>& test, int64_t low, int64_t high);

// Accuracy of commonest().
double commonest_token_score(const std::vector<Example>& test, int64_t low, int64_t high);

// The token after the latest earlier occurrence of the `run` tokens that end at `position`; -1 if
// there is no earlier occurrence.
int32_t after_latest(const std::vector<int32_t>& tokens, size_t position, size_t run);

// The most frequent token of [low, high] in positions 0 .. position, the smallest of several; -1 if
// there is none.
int32_t commonest(const std::vector<int32_t>& tokens, size_t position, int64_t low, int64_t high);

}  // namespace attn::recall
