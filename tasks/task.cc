// The public members of Task: every example is checked against the task's shape before it leaves,
// see task.h. O(length).
#include "tasks/task.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/parallel.h"
#include "tasks/shortcuts/fitted.h"

namespace attn {
namespace {

void check_inputs(const Example& e, const TaskShape& shape) {
  ATTN_CHECK(e.tokens.empty() != e.values.empty(),
             "example has {} tokens and {} values; exactly one must be filled", e.tokens.size(),
             e.values.size());
  const size_t size = e.tokens.size() + e.values.size();
  ATTN_CHECK(size <= static_cast<size_t>(shape.length),
             "example of length {} in a task of length {}", size, shape.length);
  for (const int32_t token : e.tokens)
    ATTN_CHECK(token > kPadToken && token < shape.vocab, "token {} outside [1, {})", token,
               shape.vocab);
  for (const float value : e.values)
    ATTN_CHECK(std::isfinite(value), "input value {} is not finite", value);
}

void check_target(const Example& e, const TaskShape& shape) {
  const int64_t size = shape.per_token ? shape.length : 1;
  ATTN_CHECK(static_cast<int64_t>(e.target.size()) == size, "example has {} labels, {} expected",
             e.target.size(), size);
  bool scored = false;
  for (const int32_t label : e.target) {
    const bool ignored = shape.per_token && label == kIgnoredLabel;
    ATTN_CHECK(ignored || (label >= 0 && label < shape.classes), "label {} outside [0, {})", label,
               shape.classes);
    scored |= !ignored;
  }
  ATTN_CHECK(scored, "example without a scored label");
}

void check_evidence(const Example& e) {
  const auto size = static_cast<int32_t>(e.tokens.size() + e.values.size());
  int32_t previous = -1;
  for (const int32_t position : e.evidence) {
    ATTN_CHECK(position > previous && position < size,
               "evidence position {} after {} in a sequence of {}", position, previous, size);
    previous = position;
  }
  for (const auto& [name, value] : e.slices)
    ATTN_CHECK(std::isfinite(value), "slice '{}' is {}", name, value);
}

}  // namespace

std::string_view to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    case Split::test:
      return "test";
  }
  throw_error("unknown split");
}

Example Task::example(uint64_t seed, Split split, int64_t index) const {
  ATTN_CHECK(index >= 0, "example index {} is negative", index);
  Example e = do_example(seed, split, index);
  const TaskShape s = shape();
  check_inputs(e, s);
  check_target(e, s);
  check_evidence(e);
  return e;
}

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
  const std::vector<Example> train =
      examples(Split::train, std::min(train_count, train_examples()));
  const std::vector<Example> test = examples(Split::test, test_count);
  std::vector<Shortcut> result = {
      {"majority", lookup_score(train, test, [](const Example&, size_t) { return 0; })}};
  for (Shortcut& s : do_shortcuts(train, test)) {
    ATTN_CHECK(s.score >= 0 && s.score <= 1, "shortcut '{}' scored {}", s.name, s.score);
    result.push_back(std::move(s));
  }
  return result;
}

std::unique_ptr<Task> TaskInfo::build(const std::map<std::string, ParamValue>& given) const {
  return make(Params(name, params, given));
}

}  // namespace attn
