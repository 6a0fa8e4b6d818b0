// The table of task checks, and the checks of examples: reproducible, thread-safe, with ids and
// labels in range and disjoint splits. Costs the generation of a few hundred examples.
#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "core/base/parallel.h"
#include "harness/check/contract.h"
#include "harness/check/task_checks.h"

namespace attn {
namespace {

using attn_check::Level;
using attn_check::Outcome;
using attn_check::Result;

constexpr Split kSplits[] = {Split::train, Split::validation, Split::test};
constexpr double kDuplicates = 0.05;  // equal inputs allowed between independent streams

bool same(const Example& a, const Example& b) {
  return a.tokens == b.tokens && a.values == b.values && a.target == b.target &&
         a.second == b.second && a.evidence == b.evidence && a.distances == b.distances &&
         a.slices == b.slices && a.wanted == b.wanted && a.edges == b.edges;
}

std::vector<int32_t> input_of(const Example& e) {
  std::vector<int32_t> input = e.tokens;
  for (const float value : e.values) input.push_back(std::bit_cast<int32_t>(value));
  input.push_back(kPadToken);  // ends a document
  input.insert(input.end(), e.second.begin(), e.second.end());
  input.push_back(kPadToken);
  for (const auto& [from, to] : e.edges) input.insert(input.end(), {from, to});
  return input;
}

// Task::example refuses what does not fit the task's shape; here it is asked for many, and drawn.
void check_examples(const TaskSubject& subject, Verdict& verdict) {
  const Task& task = subject.task();
  for (const Split split : kSplits)
    for (int64_t i = 0; i < subject.count(split); i++) {
      const Example example = task.example(1, split, i);
      verdict.require((task.shape().vocab == 0) == example.tokens.empty(),
                      "{} example {} has {} tokens, the vocabulary {} ids", to_string(split), i,
                      example.tokens.size(), task.shape().vocab);
      const size_t drawn = task.draw(example).size();
      verdict.require(drawn > 0, "{} example {} is drawn with {} characters", to_string(split), i,
                      drawn);
    }
  verdict.require(task.train_examples() >= 1, "{} training examples", task.train_examples());
}

void check_repeats(const TaskSubject& subject, Verdict& verdict) {
  const Task& task = subject.task();
  const auto again = subject.make();
  for (const Split split : kSplits) {
    std::vector<Example> seen;
    for (int64_t i = 0; i < subject.count(split); i++) seen.push_back(task.example(1, split, i));
    for (int64_t i = subject.count(split) - 1; i >= 0; i--) {  // another object, another order
      const bool equal = same(seen[static_cast<size_t>(i)], again->example(1, split, i));
      verdict.require(equal, "{} example {} {}", to_string(split), i,
                      equal ? "repeats" : "differs when made again");
    }
  }
}

void check_shared_use(const TaskSubject& subject, Verdict& verdict) {
  struct Restore {
    int before = threads();
    ~Restore() { set_threads(before); }
  } const restore;
  const Task& task = subject.task();
  const int64_t count = subject.count(Split::train);
  std::vector<Example> parallel(static_cast<size_t>(count));
  set_threads(2);
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      parallel[static_cast<size_t>(i)] = task.example(2, Split::train, i);
  });
  for (int64_t i = 0; i < count; i++) {
    const bool equal = same(parallel[static_cast<size_t>(i)], task.example(2, Split::train, i));
    verdict.require(equal, "train example {} {} two threads", i,
                    equal ? "is the same on" : "differs on");
  }
}

// A distance where a label is scored and its evidence known, of fewer positions than its document
// has; none where nothing is scored. An answer that is not a label per position has one.
void check_distances(const TaskSubject& subject, Verdict& verdict) {
  const Task& task = subject.task();
  const bool each = task.shape().per_token;
  for (int64_t i = 0; i < subject.count(Split::test); i++) {
    const Example e = task.example(1, Split::test, i);
    const size_t answers = each ? e.target.size() : 1;
    verdict.require(e.distances.empty() || e.distances.size() == answers,
                    "test example {} has {} distances and {} answers", i, e.distances.size(),
                    answers);
    verdict.require(e.evidence.empty() || !e.distances.empty(),
                    "test example {} has {} pieces of evidence and {} distances", i,
                    e.evidence.size(), e.distances.size());
    const int64_t length = std::max<int64_t>(positions(e, task.shape()), std::ssize(e.second));
    for (size_t at = 0; at < std::min(e.distances.size(), answers); at++) {
      const int64_t distance = e.distances[at];
      const bool scored = !each || e.target[at] != kIgnoredLabel;
      verdict.require(scored ? distance >= 0 && distance < length : distance == -1,
                      "test example {}, position {}, {}: distance {} in an input of {}", i, at,
                      scored ? "scored" : "not scored", distance, length);
    }
  }
}

// Inputs seen in one stream must not come again in another split, under another seed or index. What
// was read is the same under every seed.
void check_splits(const TaskSubject& subject, Verdict& verdict) {
  const Task& task = subject.task();
  std::map<std::vector<int32_t>, std::string> seen;
  double repeated = 0, total = 0;
  std::string where = "none";
  for (uint64_t seed = 1; seed <= (task.source() ? 1 : 2); seed++)
    for (const Split split : kSplits)
      for (int64_t i = 0; i < subject.count(split); i++, total++) {
        const Example example = task.example(seed, split, i);
        const std::string which = fmt::format("seed {} {} {}", seed, to_string(split), i);
        const auto [found, added] = seen.try_emplace(input_of(example), which);
        if (added) continue;
        repeated++;
        where = which + " repeats " + found->second;
      }
  verdict.expect(repeated / total, kDuplicates,
                 "{} of {} inputs of different streams are equal ({})", repeated, total, where);
}

struct TaskCheck {
  const char* name;
  void (*run)(const TaskSubject&, Verdict&);
  bool quick;
};

// The first one must hold for the others to mean anything.
constexpr TaskCheck kTaskChecks[] = {
    {"examples", check_examples, true},   {"determinism", check_repeats, true},
    {"threads", check_shared_use, true},  {"splits", check_splits, true},
    {"distances", check_distances, true}, {"balance", check_balance, true},
    {"chance", check_chance, true},       {"shortcuts", check_shortcuts, false},
};

Result run_task_check(const TaskCheck& check, const TaskSubject& subject, const std::string& name) {
  Result result{name, check.name, Outcome::passed, ""};
  try {
    Verdict verdict;
    check.run(subject, verdict);
    if (verdict.failed()) result.outcome = Outcome::failed;
    result.detail = verdict.detail();
  } catch (const std::exception& error) {
    result.outcome = Outcome::failed;
    result.detail = fmt::format("threw: {}", error.what());
  }
  return result;
}

}  // namespace

std::vector<Result> check_task(const TaskInfo& info,
                               const std::map<std::string, ParamValue>& params, Level level,
                               const std::string& only) {
  const TaskSubject subject{info, params, level};
  const Params resolved = info.resolve(params);  // an Error here is the caller's
  const std::string name =
      params.empty() ? info.name : fmt::format("{}[{}]", info.name, resolved.str());
  const Result examples = run_task_check(kTaskChecks[0], subject, name);
  std::vector<Result> results;
  for (const TaskCheck& check : kTaskChecks) {
    if ((!only.empty() && only != check.name) || (!check.quick && level != Level::full)) continue;
    if (check.name == examples.name)
      results.push_back(examples);
    else if (examples.outcome == Outcome::passed)
      results.push_back(run_task_check(check, subject, name));
    else
      results.push_back({name, check.name, Outcome::skipped, "needs valid examples"});
  }
  return results;
}

std::vector<std::string> task_check_names() {
  std::vector<std::string> names;
  for (const TaskCheck& check : kTaskChecks) names.emplace_back(check.name);
  return names;
}

}  // namespace attn
