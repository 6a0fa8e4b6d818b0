// The exact-match score of a predictor without attention: the share of output sequences that it
// predicts completely. Costs one prediction per example.
#pragma once

#include <functional>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

inline double exact_match(const std::vector<Example>& examples,
                          const std::function<std::vector<int32_t>(const Example&)>& predict) {
  int64_t right = 0;
  for (const Example& e : examples) right += predict(e) == e.target;
  return static_cast<double>(right) / static_cast<double>(examples.size());
}

}  // namespace attn
