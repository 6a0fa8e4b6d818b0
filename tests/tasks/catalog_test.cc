// Every task of the catalog: documented, listed wherever it must be, the same in every order, with
// different examples in different splits and a ladder of shortcuts. Its bits: golden_test.cc.
#include "tasks/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "core/base/check.h"
#include "tests/places.h"
#include "tests/plugins_on_disk.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::tasks_catalog_test {
namespace {

// Quick settings: the defaults are those of the literature.
std::unique_ptr<Task> make(const std::string& name) {
  const TaskInfo& info = find_task(name);
  for (const char* const preset : {"small", "standard"})
    for (const Preset& known : info.presets)
      if (known.name == preset) return info.build({{"preset", std::string(preset)}});
  return info.build();
}

// Fewer of the long ones.
int64_t some(const Task& task, int64_t most) {
  return std::clamp(most * 512 / task.shape().length, int64_t{10}, most);
}

constexpr Split kSplits[] = {Split::train, Split::validation, Split::test};

class Fnv {
 public:
  void add(uint64_t word) {
    for (int i = 0; i < 8; i++, word >>= 8) hash_ = (hash_ ^ (word & 255)) * 0x100000001b3ULL;
  }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

uint64_t checksum(const Example& e) {
  Fnv fnv;
  for (const int32_t t : e.tokens) fnv.add(static_cast<uint32_t>(t));
  for (const int32_t t : e.second) fnv.add(static_cast<uint32_t>(t));
  for (const float v : e.values) fnv.add(std::bit_cast<uint32_t>(v));
  for (const int32_t t : e.target) fnv.add(static_cast<uint32_t>(t));
  for (const float v : e.wanted) fnv.add(std::bit_cast<uint32_t>(v));
  for (const auto& [from, to] : e.edges)
    for (const int32_t p : {from, to}) fnv.add(static_cast<uint32_t>(p));
  for (const int32_t p : e.evidence) fnv.add(static_cast<uint32_t>(p));
  for (const auto& [name, value] : e.slices) fnv.add(std::bit_cast<uint64_t>(value));
  for (const auto& [name, values] : e.label_slices)
    for (const int32_t v : values) fnv.add(static_cast<uint32_t>(v));
  return fnv.hash();
}

std::string input(const Example& e) {
  std::string bytes(reinterpret_cast<const char*>(e.tokens.data()), e.tokens.size() * 4);
  bytes.append(reinterpret_cast<const char*>(e.second.data()), e.second.size() * 4);
  return bytes.append(reinterpret_cast<const char*>(e.values.data()), e.values.size() * 4);
}

TEST(Catalog, NamesTheNearestTask) {
  EXPECT_EQ(find_task("mqar").name, "mqar");
  EXPECT_TRUE(says(fault_of([&] { find_task("listop"); }), "'listops'"));
}

TEST(Catalog, ListsEveryTaskOfTheFolder) {
  std::set<std::string> listed;
  for (const TaskInfo& info : all_tasks()) listed.insert(info.name);
  EXPECT_EQ(names_of(plugins_on_disk(source_folder() / "tasks", "TaskInfo")), listed);
}

class EveryTask : public testing::TestWithParam<std::string> {};

TEST_P(EveryTask, IsDocumented) {
  const TaskInfo& info = find_task(GetParam());
  EXPECT_FALSE(info.summary.empty());
  EXPECT_FALSE(info.source.empty());
  for (const char* word : {"Label: ", "Evidence: ", "Slices: "})
    EXPECT_TRUE(says(info.datasheet, word)) << word;
  const auto task = make(GetParam());
  EXPECT_GE(task->train_examples(), 1000);
  const TaskShape shape = task->shape();
  EXPECT_EQ(info.metric, shape.real          ? "mean_squared_error"
                         : shape.bits        ? "bits_per_token"
                         : shape.outputs > 0 ? "exact_match"
                                             : "accuracy");
  if (shape.bits) {
    EXPECT_NEAR(task->chance(), std::log2(static_cast<double>(shape.classes)), 1e-12);
  } else if (!shape.real && shape.outputs == 0) {
    EXPECT_NEAR(task->chance(), 1.0 / static_cast<double>(shape.classes), 1e-12);
  }
  const Example e = task->example(1, Split::test, 0);
  EXPECT_GT(task->draw(e).size(), 20u);
  for (const auto& [name, value] : e.slices) EXPECT_TRUE(says(info.datasheet, name)) << name;
  for (const auto& [name, values] : e.label_slices) EXPECT_TRUE(says(info.datasheet, name)) << name;
  EXPECT_THROW(info.build({{"no_such", int64_t{1}}}), Error);
}

TEST_P(EveryTask, IsIndependentOfOrderThreadsAndObject) {
  const auto task = make(GetParam()), other = make(GetParam());
  const int64_t count = some(*task, 60);
  std::vector<uint64_t> forward, backward(static_cast<size_t>(count)),
      threaded(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; i++)
    forward.push_back(checksum(task->example(1, Split::train, i)));
  for (int64_t i = count; i-- > 0;)
    backward[static_cast<size_t>(i)] = checksum(other->example(1, Split::train, i));
  EXPECT_EQ(forward, backward);
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int64_t i = t; i < count; i += 4)
        threaded[static_cast<size_t>(i)] = checksum(task->example(1, Split::train, i));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(forward, threaded);
}

TEST_P(EveryTask, SplitsAndSeedsShareNoExample) {
  const auto task = make(GetParam());
  const int64_t count = some(*task, 100);
  std::set<std::string> seen;
  for (const uint64_t seed : {1, 2})
    for (const Split split : kSplits)
      for (int64_t i = 0; i < count; i++) seen.insert(input(task->example(seed, split, i)));
  EXPECT_EQ(seen.size(), static_cast<size_t>(6 * count));
}

TEST_P(EveryTask, ShortcutsStartWithAConstantHoldALadderAndAreAtLeastChance) {
  const auto task = make(GetParam());
  const TaskShape shape = task->shape();
  const int64_t test = some(*task, 500);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, some(*task, 500), test);
  EXPECT_EQ(shortcuts.at(0).name, shape.real   ? "mean of the answers"
                                  : shape.bits ? "label frequencies"
                                               : "majority");
  if (!is_error(shape) && shape.outputs == 0) {
    const char* const window = shape.compressed ? "window of 16 (last)" : "window of 16 (best)";
    EXPECT_GE(score_of(shortcuts, window), 0);
  }
  const double chance = task->chance();
  const double error = std::sqrt(chance * (1 - chance) / static_cast<double>(test));
  std::set<std::string> names;
  for (const Shortcut& s : shortcuts) {
    // An error's own deviation is not known here: it must not be far above the best constant's.
    EXPECT_TRUE(is_error(shape) ? s.score < 1.5 * chance : s.score >= chance - 4.5 * error)
        << s.name << ' ' << s.score;
    EXPECT_TRUE(names.insert(s.name).second) << s.name << " twice";
  }
}

// The better end of both kinds of score: 1 is a solved task, 0 the best constant or no right
// answer.
double share_solved(const Task& task, const std::vector<Shortcut>& shortcuts) {
  double best = 0;
  for (const Shortcut& s : shortcuts)
    best = std::max(best, is_error(task.shape()) ? 1 - s.score / task.chance() : s.score);
  return best;
}

// Where a shortcut solves a task, lift can show nothing: it must be called a control, and a control
// must be solved.
TEST_P(EveryTask, AShortcutSolvesControlsAndNothingElse) {
  const TaskInfo& info = find_task(GetParam());
  std::vector<std::map<std::string, ParamValue>> levels = {{}};
  for (const Preset& preset : info.presets)
    if (preset.name == "standard") levels.push_back({{"preset", preset.name}});
  for (const auto& level : levels) {
    const auto task = info.build(level);
    const double solved =
        share_solved(*task, task->shortcuts(1, some(*task, 500), some(*task, 300)));
    if (info.control.empty())
      EXPECT_LT(solved, 0.99) << task->params().str();
    else
      EXPECT_GE(solved, 0.99) << task->params().str();
  }
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const TaskInfo& info : all_tasks()) result.push_back(info.name);
  return result;
}
INSTANTIATE_TEST_SUITE_P(Tasks, EveryTask, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

TEST(Catalog, ATaskOfAPluginThatDoesNotFitIsRefused) {
  const size_t before = all_tasks().size();
  for (const auto& [name, word] : std::map<std::string, std::string>{
           {"copy", "'copy' already"}, {"Own", "small letter"}, {"", "small letter"}}) {
    TaskInfo info = find_task("mqar");
    info.name = name;
    EXPECT_TRUE(says(fault_of([&] { add_task(info, "0123456789abcdef"); }), word));
  }
  EXPECT_EQ(all_tasks().size(), before);
  EXPECT_EQ(task_plugin("copy"), "");
  EXPECT_EQ(task_named("copies"), nullptr);
}

}  // namespace
}  // namespace attn::tasks_catalog_test
