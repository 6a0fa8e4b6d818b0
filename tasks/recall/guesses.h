// What can be said of a recalled token without looking its key up: rules that the recall tasks
// offer as shortcuts. Each is O(position) a label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tasks/api/task.h"

namespace attn::recall {

// Expected accuracy, over the scored labels, of naming one of the candidates at random.
double any_of_score(
    const std::vector<Example>& test,
    const std::function<std::vector<int32_t>(const Example&, size_t position)>& candidates);

// Accuracy of a rule over the scored labels.
double rule_score(const std::vector<Example>& test,
                  const std::function<int32_t(const Example&, size_t position)>& rule);

// The token that came after the latest earlier place where the `run` tokens that end at `position`
// stood; -1 where there is none.
int32_t after_latest(const std::vector<int32_t>& tokens, size_t position, size_t run);

// The commonest of the tokens [low, high] up to `position`, of several the smallest; -1: none.
int32_t commonest(const std::vector<int32_t>& tokens, size_t position, int32_t low, int32_t high);

}  // namespace attn::recall
