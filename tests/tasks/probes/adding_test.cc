// Probes that keep a sequence: adding, compression and memorization.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::adding_test {
namespace {

// adding against a sum over its markers, their places against the datasheet, and its ladder against
// what is known of uniform numbers.

std::unique_ptr<Task> make_adding(int64_t length, const std::string& markers) {
  return find_task("adding").build({{"length", length}, {"markers", markers}});
}

struct Read {
  double sum = 0;
  std::vector<int32_t> marked;
};

// Of pairs (number, marker).
Read read(const Example& e) {
  Read result;
  for (size_t i = 0; i + 1 < e.values.size(); i += 2) {
    EXPECT_GE(e.values[i], 0);
    EXPECT_LT(e.values[i], 1);
    EXPECT_TRUE(e.values[i + 1] == 0 || e.values[i + 1] == 1);
    if (e.values[i + 1] == 0) continue;
    result.sum += static_cast<double>(e.values[i]);
    result.marked.push_back(static_cast<int32_t>(i / 2));
  }
  return result;
}

TEST(Adding, TheAnswerIsTheSumOfTheTwoMarkedNumbers) {
  for (const char* markers : {"halves", "anywhere"})
    for (const int64_t length : {2, 7, 40, 200}) {
      const auto task = make_adding(length, markers);
      for (int64_t i = 0; i < 100; i++) {
        const Example e = task->example(3, Split::validation, i);
        ASSERT_EQ(std::ssize(e.values), 2 * length);
        const auto [sum, marked] = read(e);
        ASSERT_EQ(marked.size(), 2u);
        ASSERT_FLOAT_EQ(e.wanted.at(0), static_cast<float>(sum));
        ASSERT_EQ(e.evidence, marked);
        ASSERT_EQ(e.distances, std::vector<int32_t>{marked[1] - marked[0]});
        ASSERT_EQ(e.slices.at("gap"), marked[1] - marked[0]);
        ASSERT_TRUE(e.target.empty());
      }
    }
}

// Counts of the marked positions against the datasheet's, within five deviations.
TEST(Adding, MarkersAreUniformInTheirHalvesOrAnywhere) {
  constexpr int kCount = 6000;
  for (const bool halves : {true, false}) {
    const auto task = make_adding(9, halves ? "halves" : "anywhere");
    std::vector<double> counts(9, 0.0);
    for (int64_t i = 0; i < kCount; i++)
      for (const int32_t p : task->example(1, Split::train, i).evidence)
        counts[static_cast<size_t>(p)]++;
    for (size_t p = 0; p < counts.size(); p++) {
      const double expected = halves ? (p < 4 ? 1.0 / 4 : 1.0 / 5) : 2.0 / 9;
      const double deviation = std::sqrt(kCount * expected * (1 - expected));
      EXPECT_NEAR(counts[p], kCount * expected, 5 * deviation) << p;
    }
  }
}

TEST(Adding, NumbersAreUniform) {
  const auto task = make_adding(50, "anywhere");
  double sum = 0, square = 0, count = 0;
  for (int64_t i = 0; i < 400; i++) {
    const Example e = task->example(2, Split::test, i);
    for (size_t p = 0; p < e.values.size(); p += 2, count++) {
      const auto x = static_cast<double>(e.values[p]);
      sum += x;
      square += x * x;
    }
  }
  EXPECT_NEAR(sum / count, 1.0 / 2, 5 * std::sqrt(1.0 / 12 / count));
  EXPECT_NEAR(square / count, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / count));
}

TEST(Adding, ShapeAndShortcuts) {
  const auto task = make_adding(40, "halves");
  const TaskShape shape = task->shape();
  EXPECT_TRUE(shape.real);
  EXPECT_EQ(shape.channels, 2);
  EXPECT_EQ(shape.classes, 1);
  EXPECT_EQ(find_task("adding").metric, "mean_squared_error");
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 6);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, 4000, 2000);
  // Squares of the sum's deviation: their own variance is (1/15 + 1/36·1/2) − 1/36 < 1/18.
  const double error = 5 * std::sqrt(1.0 / 18 / 2000);
  EXPECT_NEAR(score_of(shortcuts, "mean of the answers"), 1.0 / 6, error);
  EXPECT_EQ(shortcuts[0].name, "mean of the answers");
  // A number counts where it is marked, one time in 20: its square is what a line can explain.
  EXPECT_NEAR(score_of(shortcuts, "linear in the inputs"), 1.0 / 6 - 2.0 / 20 / 12, error);
  EXPECT_LT(score_of(shortcuts, "bag of values"), 1e-3);
}

TEST(Adding, BadParametersAreClearErrors) {
  EXPECT_THROW(make_adding(1, "halves"), Error);
  EXPECT_THROW(make_adding(10, "thirds"), Error);
}

// compression: the labels are the tokens, all of them; counts, and what a window knows.

std::unique_ptr<Task> make_compression(int64_t vocab, int64_t length) {
  return find_task("compression").build({{"vocab", vocab}, {"length", length}});
}

TEST(Compression, EveryLabelIsThePositionsToken) {
  for (const auto& [vocab, length] : {std::pair{16, 32}, std::pair{3, 40}, std::pair{128, 9}}) {
    const auto task = make_compression(vocab, length);
    for (int64_t i = 0; i < 150; i++) {
      const Example e = task->example(2, Split::test, i);
      ASSERT_EQ(std::ssize(e.tokens), length);
      ASSERT_EQ(e.tokens.back(), vocab);
      ASSERT_EQ(e.target.back(), kIgnoredLabel);
      ASSERT_EQ(e.distances.back(), -1);
      ASSERT_EQ(std::ssize(e.evidence), length - 1);
      for (size_t p = 0; p + 1 < e.tokens.size(); p++) {
        ASSERT_GE(e.tokens[p], 1);
        ASSERT_LT(e.tokens[p], vocab);
        ASSERT_EQ(e.target[p], e.tokens[p]);
        ASSERT_EQ(e.distances[p], length - 1 - static_cast<int64_t>(p));
        ASSERT_EQ(e.evidence[p], static_cast<int32_t>(p));
      }
    }
  }
}

TEST(Compression, TokensAreUniformAtEveryPosition) {
  const auto task = make_compression(5, 12);
  constexpr int kCount = 4000;
  std::map<std::pair<size_t, int32_t>, double> counts;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->any_example(3, Split::train, i);
    for (size_t p = 0; p + 1 < e.tokens.size(); p++) counts[{p, e.tokens[p]}]++;
  }
  ASSERT_EQ(counts.size(), 44u);
  const double mean = kCount / 4.0;
  for (const auto& [key, count] : counts)
    EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << key.first << " " << key.second;
}

TEST(Compression, ShapeAndShortcuts) {
  const auto task = make_compression(16, 32);
  const TaskShape shape = task->shape();
  EXPECT_TRUE(shape.compressed && shape.per_token && shape.causal);
  EXPECT_EQ(shape.vocab, 17);
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 17);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, 2000, 1000);
  for (const char* const name : {"majority", "position"})
    EXPECT_NEAR(score_of(shortcuts, name), 1.0 / 15, 0.01) << name;
  // The window that ends at the compression token holds 15 of the 31 tokens.
  EXPECT_NEAR(score_of(shortcuts, "window of 16 (last)"), (15 + 16.0 / 15) / 31, 0.01);
  for (const Shortcut& shortcut : shortcuts) EXPECT_LT(shortcut.score, 0.55) << shortcut.name;
}

TEST(Compression, TooFewInputsAreAClearError) {
  EXPECT_THROW(make_compression(3, 20), Error);
  EXPECT_NO_THROW(make_compression(3, 21));
}

// memorization: the map learned from training examples answers every other split and seed.

std::unique_ptr<Task> make_memorization(int64_t vocab, int64_t length, int64_t map_seed = 0) {
  return find_task("memorization")
      .build({{"vocab", vocab}, {"length", length}, {"map_seed", map_seed}});
}

// What the examples of one split say; fails when they contradict each other.
std::map<int32_t, int32_t> map_of(const Task& task, uint64_t seed, Split split, int64_t count) {
  std::map<int32_t, int32_t> map;
  for (int64_t i = 0; i < count; i++) {
    const Example e = task.example(seed, split, i);
    for (size_t p = 1; p < e.tokens.size(); p += 2)
      EXPECT_EQ(map.emplace(e.tokens[p - 1], e.target[p]).first->second, e.target[p]);
  }
  return map;
}

TEST(Memorization, OneMapHoldsForAllSplitsAndSeeds) {
  for (const auto& [vocab, length, keys] : {std::tuple{256, 32, 127}, std::tuple{10, 24, 4}}) {
    const auto task = make_memorization(vocab, length);
    const auto learned = map_of(*task, 1, Split::train, 400);
    ASSERT_EQ(std::ssize(learned), keys);
    EXPECT_EQ(map_of(*task, 1, Split::validation, 400), learned);
    EXPECT_EQ(map_of(*task, 7, Split::test, 400), learned);
    std::set<int32_t> values;
    for (const auto& [key, value] : learned) {
      EXPECT_LE(key, keys);
      EXPECT_GT(value, keys);
      EXPECT_LT(value, vocab);
      EXPECT_TRUE(values.insert(value).second) << value << " twice";
    }
  }
}

TEST(Memorization, TheSeedOfTheMapDrawsItUniformly) {
  std::map<int32_t, double> of_first;
  constexpr int kMaps = 600;
  for (int64_t seed = 0; seed < kMaps; seed++)
    of_first[map_of(*make_memorization(8, 26, seed), 1, Split::train, 3).at(1)]++;
  ASSERT_EQ(of_first.size(), 4u);  // values 4 to 7 for keys 1 to 3
  for (const auto& [value, count] : of_first)
    EXPECT_NEAR(count, kMaps / 4.0, 5 * std::sqrt(kMaps / 4.0)) << value;
}

TEST(Memorization, KeysAndInsertTokensAlternate) {
  const auto task = make_memorization(64, 16);
  std::map<int32_t, double> keys;
  constexpr int kCount = 2000;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->any_example(3, Split::test, i);
    ASSERT_EQ(e.tokens.size(), 16u);
    for (size_t p = 0; p < e.tokens.size(); p += 2) {
      keys[e.tokens[p]]++;
      ASSERT_EQ(e.tokens[p + 1], 64);
      ASSERT_EQ(e.target[p], kIgnoredLabel);
      ASSERT_EQ(e.distances[p], -1);
      ASSERT_EQ(e.distances[p + 1], 1);
      ASSERT_EQ(e.evidence[p / 2], static_cast<int32_t>(p));
    }
  }
  ASSERT_EQ(keys.size(), 31u);
  const double mean = kCount * 8 / 31.0;
  for (const auto& [key, count] : keys) EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean));
}

// A table answers what training showed: of 4095 keys, 256 examples of 16 show all but a share of
// (1 - 1/4095)^4096, and the rest is a guess of one of the commonest labels.
TEST(Memorization, ALookUpKnowsWhatWasSeen) {
  EXPECT_EQ(score_of(make_memorization(64, 16)->shortcuts(1, 500, 500), "look-up of the key"), 1);
  const auto wide = find_task("memorization").build({{"preset", std::string("mad-wide")}});
  EXPECT_NEAR(score_of(wide->shortcuts(1, 1000, 1000), "look-up of the key"), 1 - std::exp(-1),
              0.02);
  EXPECT_DOUBLE_EQ(wide->chance(), 1.0 / 8193);
}

TEST(Memorization, BadParametersAreClearErrors) {
  const auto message = [](int64_t vocab, int64_t length) -> std::string {
    return fault_of([&] { make_memorization(vocab, length); });
  };
  EXPECT_TRUE(says(message(64, 15), "length=15 must be even"));
  EXPECT_TRUE(says(message(64, 8), "different inputs"));
  EXPECT_EQ(message(64, 10), "");
}

}  // namespace
}  // namespace attn::adding_test
