// The first examples of every task against the checksums in golden.txt: the same for every
// compiler, optimisation level and platform. A deliberate change of a generator changes its lines,
// and accuracy rows before and after do not compare. ATTN_GOLDEN_ALL=1: 1000 examples at Long Range
// Arena's sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/places.h"

namespace attn::golden_test {
namespace {

constexpr uint64_t kSeed = 42;

// FNV-1a over 32-bit words, each list after its length.
class Checksum {
 public:
  void add(uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8)
      hash_ = (hash_ ^ ((word >> shift) & 255)) * 0x100000001b3ULL;
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(static_cast<uint32_t>(list.size()));
    for (const T entry : list) add(std::bit_cast<uint32_t>(entry));
  }
  void add(const Example& e) {
    add(e.tokens);
    add(e.second);
    add(e.values);
    add(e.target);
    add(e.evidence);
    add(e.distances);
    if (!e.wanted.empty()) add(e.wanted);  // tasks without these kept their checksums
    for (const auto& [from, to] : e.edges) add(std::vector<int32_t>{from, to});
  }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

struct Level {
  std::string task, preset;  // "": the defaults
  int64_t count;
  std::string name() const { return preset.empty() ? task : task + "[preset=" + preset + "]"; }
};
void PrintTo(const Level& level, std::ostream* out) { *out << level.name() << ' ' << level.count; }

std::unique_ptr<Task> build(const Level& level) {
  if (level.preset.empty()) return find_task(level.task).build();
  return find_task(level.task).build({{"preset", level.preset}});
}

std::string line(const Level& level, Split split) {
  const auto task = build(level);
  Checksum sum;
  for (int64_t i = 0; i < level.count; i++) sum.add(task->example(kSeed, split, i));
  return fmt::format("{} {} {} {:016x}", level.name(), to_string(split), level.count, sum.hash());
}

bool has(const TaskInfo& info, std::string_view preset) {
  return std::any_of(info.presets.begin(), info.presets.end(),
                     [&](const Preset& p) { return p.name == preset; });
}

#ifdef ATTN_SANITIZED  // slow, and the bits of long examples do not depend on it
constexpr bool kShortAlone = true;
#else
constexpr bool kShortAlone = false;
#endif

std::vector<Level> levels() {
  const char* const all = std::getenv("ATTN_GOLDEN_ALL");
  constexpr int64_t kMany = 1000, kFew = 20, kLong = 4096;  // of long examples a few in every run
  std::vector<Level> result;
  for (const TaskInfo& info : all_tasks()) {
    if (has(info, "small")) result.push_back({info.name, "small", kMany});
    const std::string largest = has(info, "lra") ? "lra" : "";
    const bool quick = largest.empty() && info.build()->shape().length < kLong;
    if (!quick && kShortAlone && !all) continue;
    result.push_back({info.name, largest, quick ? kMany : kFew});
    if (all && std::string_view(all) == "1" && !quick)
      result.push_back({info.name, largest, kMany});
  }
  return result;
}

std::set<std::string> golden() {
  std::ifstream file(source_folder() / "tests/tasks/golden.txt");
  std::set<std::string> lines;
  for (std::string text; std::getline(file, text);)
    if (!text.empty() && text[0] != '#') lines.insert(text);
  return lines;
}

class Golden : public testing::TestWithParam<Level> {};

TEST_P(Golden, ExamplesHaveTheChecksumOfTheFile) {
  const std::set<std::string> known = golden();
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const std::string found = line(GetParam(), split);
    EXPECT_TRUE(known.count(found)) << "tests/tasks/golden.txt should say\n" << found;
  }
}
INSTANTIATE_TEST_SUITE_P(Tasks, Golden, testing::ValuesIn(levels()), [](const auto& test) {
  const Level& level = test.param;
  return fmt::format("{}_{}_{}", level.task, level.preset.empty() ? "default" : level.preset,
                     level.count);
});

TEST(GoldenFile, NamesNoOtherTaskAndNoLineTwice) {
  std::set<std::string> subjects;
  for (const std::string& text : golden()) {
    const std::string subject = text.substr(0, text.rfind(' '));
    EXPECT_TRUE(subjects.insert(subject).second) << subject << " has two checksums";
    EXPECT_NO_THROW(find_task(text.substr(0, text.find_first_of("[ ")))) << text;
  }
}

TEST(GoldenFile, AChecksumSeesEveryPartOfAnExample) {
  const Example plain{.tokens = {1, 2}, .second = {3}, .target = {1}, .evidence = {0}};
  const auto sum = [&](const auto& change) {
    Example e = plain;
    change(e);
    Checksum checksum;
    checksum.add(e);
    return checksum.hash();
  };
  const std::set<uint64_t> sums = {sum([](Example&) {}),
                                   sum([](Example& e) {
                                     e.tokens = {2, 1};
                                   }),
                                   sum([](Example& e) {
                                     e.tokens = {1}, e.second = {2, 3};
                                   }),
                                   sum([](Example& e) { e.values = {0.0f}; }),
                                   sum([](Example& e) { e.values = {-0.0f}; }),
                                   sum([](Example& e) { e.target = {0}; }),
                                   sum([](Example& e) { e.evidence = {1}; }),
                                   sum([](Example& e) { e.distances = {1}; }),
                                   sum([](Example& e) { e.wanted = {1.0f}; }),
                                   sum([](Example& e) {
                                     e.edges = {{0, 1}};
                                   }),
                                   sum([](Example& e) {
                                     e.edges = {{1, 0}};
                                   })};
  EXPECT_EQ(sums.size(), 11u);
}

}  // namespace
}  // namespace attn::golden_test
