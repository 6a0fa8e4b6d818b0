// Task::shortcuts: the shortcuts of all tasks (ladder.h), then the task's own. The definition is in
// this folder because tasks/api does not depend on ladder.h. Time: as for ladder.h, and the
// generation of the examples.
#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "tasks/api/task.h"
#include "tasks/shortcuts/ladder.h"

namespace attn {

std::vector<Shortcut> Task::shortcuts(uint64_t seed, int64_t train_count,
                                      int64_t test_count) const {
  ATTN_CHECK(train_count >= 1 && test_count >= 1,
             "shortcuts need examples, got {} to fit and {} to score", train_count, test_count);
  const auto examples = [&](Split split, int64_t count) {
    std::vector<Example> result(static_cast<size_t>(count));
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        result[static_cast<size_t>(i)] = example(seed, split, i);
    });
    return result;
  };
  const int64_t fitted = ladder_examples(shape(), std::min(train_count, count(Split::train)));
  const std::vector<Example> train = examples(Split::train, fitted);
  const std::vector<Example> test = examples(Split::test, std::min(test_count, count(Split::test)));
  std::vector<Shortcut> result = ladder(shape(), train, test);
  const std::vector<Shortcut> own = do_shortcuts(train, test);
  result.insert(result.end(), own.begin(), own.end());
  const double most = is_error(shape()) ? std::numeric_limits<double>::max() : 1;
  for (const Shortcut& s : result)
    ATTN_CHECK(s.score >= 0 && s.score <= most, "shortcut '{}' scored {}", s.name, s.score);
  return result;
}

}  // namespace attn
