// Counts the labels of an example, then removes one after the other; see remaining.h.
#include "tasks/shortcuts/remaining.h"

#include <map>

#include "core/base/check.h"
#include "tasks/shortcuts/most_frequent.h"

namespace attn {

double remaining_score(const std::vector<Example>& examples) {
  int64_t right = 0, scored = 0;
  for (const Example& e : examples) {
    std::map<int32_t, int64_t> left;
    for (const int32_t label : e.target)
      if (label != kIgnoredLabel) left[label]++;
    for (const int32_t label : e.target) {
      if (label == kIgnoredLabel) continue;
      right += most_frequent(left) == label;
      scored++;
      left[label]--;
    }
  }
  ATTN_CHECK(scored > 0, "no labels to score");
  return static_cast<double>(right) / static_cast<double>(scored);
}

}  // namespace attn
