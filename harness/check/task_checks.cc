// The table of task checks, and the checks of examples: reproducible, thread-safe, with ids and
// labels in range, the same slices and disjoint splits. Costs the generation of a few hundred
// examples.
#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <span>
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

constexpr double kDuplicates = 0.05;  // equal inputs allowed between independent streams

bool same(const Example& a, const Example& b) {
  return a.tokens == b.tokens && a.values == b.values && a.target == b.target &&
         a.second == b.second && a.evidence == b.evidence && a.distances == b.distances &&
         a.slices == b.slices && a.label_slices == b.label_slices && a.wanted == b.wanted &&
         a.edges == b.edges;
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

std::string slices_of(const Example& e) {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const auto& [name, value] : e.slices) add(name);
  for (const auto& [name, values] : e.label_slices) add(name);
  return names.empty() ? "none" : names;
}

// Only a vector that answers for the whole sequence (TaskShape::compressed) is asked for labels
// beyond the input.
int64_t scored_padding(const Example& e, const TaskShape& shape) {
  if (!shape.per_token || shape.compressed) return -1;
  for (int64_t i = positions(e, shape); i < std::ssize(e.target); i++)
    if (e.target[static_cast<size_t>(i)] != kIgnoredLabel) return i;
  return -1;
}

// Task::example refuses what does not fit the task's shape; here it is asked for many, and drawn.
void check_examples(const TaskSubject& subject, Verdict& verdict) {
  const Task& task = subject.task();
  const TaskShape shape = task.shape();
  const int64_t width = task.picture_width();
  std::string slices;
  for (const Split split : kSplits) {
    int64_t i = -1;
    for (const Example& example : subject.examples(split, subject.count(split))) {
      i++;
      verdict.require((shape.vocab == 0) == example.tokens.empty(),
                      "{} example {} has {} tokens, the vocabulary {} ids", to_string(split), i,
                      example.tokens.size(), shape.vocab);
      const size_t drawn = task.draw(example).size();
      verdict.require(drawn > 0, "{} example {} is drawn with {} characters", to_string(split), i,
                      drawn);
      const auto pixels = std::ssize(task.picture(example));
      verdict.require(width > 0 ? pixels > 0 && pixels % width == 0 : pixels == 0,
                      "{} example {} is a picture of {} pixels in rows of {}", to_string(split), i,
                      pixels, width);
      const int64_t beyond = scored_padding(example, shape);
      if (beyond >= 0)
        verdict.require(false, "{} example {} of {} positions has a label at position {}",
                        to_string(split), i, positions(example, shape), beyond);
      const std::string names = slices_of(example);
      if (slices.empty()) slices = names;
      if (names != slices)
        verdict.require(false, "{} example {} has the slices {}, an earlier one {}",
                        to_string(split), i, names, slices);
    }
  }
  verdict.require(task.train_examples() >= 1, "{} training examples", task.train_examples());
}

void check_repeats(const TaskSubject& subject, Verdict& verdict) {
  const auto again = subject.make();
  for (const Split split : kSplits) {
    const std::span<const Example> seen = subject.examples(split, subject.count(split));
    for (int64_t i = subject.count(split) - 1; i >= 0; i--) {  // another object, another order
      const bool equal = same(seen[static_cast<size_t>(i)], again->example(1, split, i));
      verdict.require(equal, "{} example {} {}", to_string(split), i,
                      equal ? "repeats" : "differs when made again");
    }
  }
}

void check_shared_use(const TaskSubject& subject, Verdict& verdict) {
  const Task& task = subject.task();
  const int64_t count = subject.count(Split::train);
  std::vector<Example> parallel(static_cast<size_t>(count));
  const ScopedThreads two_threads(2);
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
        const Example example =
            seed == 1 ? subject.examples(split, i + 1).back() : task.example(seed, split, i);
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
    {"examples", check_examples, true},    {"shape", check_shape, true},
    {"determinism", check_repeats, true},  {"threads", check_shared_use, true},
    {"splits", check_splits, true},        {"evidence", check_evidence, true},
    {"distances", check_distances, true},  {"balance", check_balance, true},
    {"chance", check_chance, true},        {"presets", check_presets, false},
    {"shortcuts", check_shortcuts, false},
};

Result run_task_check(const TaskCheck& check, const TaskSubject& subject, const std::string& name) {
  Result result{name, check.name, Outcome::passed, ""};
  try {
    Verdict verdict;
    check.run(subject, verdict);
    if (verdict.skipped())
      result.outcome = Outcome::skipped;
    else if (verdict.failed())
      result.outcome = Outcome::failed;
    result.detail = verdict.skipped() ? verdict.why_skipped() : verdict.detail();
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
