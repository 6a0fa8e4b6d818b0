// needle against a scan for the last token, and its places against the depth that was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::needle_test {
namespace {

std::unique_ptr<Task> make(int64_t vocab, int64_t length, const char* haystack = "pairs",
                           double depth = -1, int64_t distractors = 3, const char* keys = "many",
                           int64_t min_length = 0) {
  return find_task("needle").build({{"vocab", vocab},
                                    {"length", length},
                                    {"min_length", min_length},
                                    {"keys", std::string(keys)},
                                    {"haystack", std::string(haystack)},
                                    {"distractors", distractors},
                                    {"depth", depth}});
}

// Where the last token stands for the first time.
size_t find_key(const std::vector<int32_t>& tokens) {
  size_t at = 0;
  while (tokens[at] != tokens.back()) at++;
  return at;
}

TEST(Needle, AScanForTheKeyFindsEveryLabel) {
  for (const auto& task :
       {make(256, 127), make(128, 127), make(2048, 508), make(300, 64), make(20, 10),
        make(64, 127, "noise"), make(31, 48, "noise", -1, 9), make(64, 50, "noise", -1, 0),
        make(256, 127, "pairs", 0.4), make(64, 127, "noise", -1, 7, "one"),
        make(256, 127, "pairs", -1, 0, "one")}) {
    const int64_t length = task->params().integer("length");
    const bool noise = task->params().text("haystack") == "noise";
    const int64_t pairs = noise ? task->params().integer("distractors") + 1 : (length - 1) / 2;
    const auto value = static_cast<int32_t>(task->params().integer("vocab") / 2);
    const auto is_key = [&](int32_t token) { return token < value; };
    const auto query = static_cast<size_t>(noise ? length - 1 : (length - 1) / 2 * 2);
    for (int64_t i = 0; i < 300; i++) {
      const Example e = task->example(3, Split::validation, i);
      ASSERT_EQ(e.tokens.size(), query + 1);
      const size_t key = find_key(e.tokens);
      ASSERT_LT(key + 1, query);
      ASSERT_EQ(e.target[query], e.tokens[key + 1]);
      ASSERT_EQ(std::count(e.target.begin(), e.target.end(), kIgnoredLabel), length - 1);
      ASSERT_EQ(e.evidence, (std::vector{static_cast<int32_t>(key), static_cast<int32_t>(key + 1),
                                         static_cast<int32_t>(query)}));
      ASSERT_EQ(e.distances[query], static_cast<int64_t>(query - key - 1));
      ASSERT_EQ(std::count_if(e.tokens.begin(), e.tokens.end(), is_key), pairs + 1);
      const auto before =
          std::count_if(e.tokens.begin(), e.tokens.begin() + static_cast<ptrdiff_t>(key), is_key);
      const double item = static_cast<double>(key) - static_cast<double>(before);
      const double items = static_cast<double>(query) - static_cast<double>(pairs);
      ASSERT_NEAR(e.slices.at("depth"), item / (items - 1), 1e-12);
    }
  }
}

// The haystack read item by item; keys are below `value`, values below `filler`.
struct Haystack {
  std::vector<int32_t> keys{}, values{}, fillers{};
  std::vector<size_t> pairs{};  // their item numbers
};

Haystack read(const Example& e, int32_t value, int32_t filler) {
  Haystack result;
  for (size_t p = 0, item = 0; p + 1 < e.tokens.size(); p++, item++) {
    if (e.tokens[p] >= filler) {
      result.fillers.push_back(e.tokens[p]);
      continue;
    }
    EXPECT_TRUE(e.tokens[p] < value && e.tokens[p + 1] >= value && e.tokens[p + 1] < filler);
    result.pairs.push_back(item);
    result.keys.push_back(e.tokens[p++]);
    result.values.push_back(e.tokens[p]);
  }
  return result;
}

TEST(Needle, KeysAreDifferentAndTokensUniform) {
  const auto pairs = make(128, 127), noise = make(64, 127, "noise");
  EXPECT_EQ(pairs->shape().vocab, 128);
  EXPECT_EQ(noise->shape().vocab, 96);
  EXPECT_EQ(noise->shape().classes, 64);
  std::map<int32_t, double> keys, values, fillers;
  for (int64_t i = 0; i < 300; i++) {
    const Haystack dense = read(pairs->example(1, Split::train, i), 64, 128);
    ASSERT_EQ(std::set(dense.keys.begin(), dense.keys.end()).size(), 63u);  // all that there are
    for (const int32_t token : dense.values) values[token]++;
    const Haystack sparse = read(noise->example(1, Split::train, i), 32, 64);
    ASSERT_EQ(std::set(sparse.keys.begin(), sparse.keys.end()).size(), 4u);
    for (const int32_t token : sparse.keys) keys[token]++;
    for (const int32_t token : sparse.fillers) fillers[token]++;
  }
  EXPECT_EQ(keys.size(), 31u);
  EXPECT_EQ(values.size(), 64u);
  EXPECT_EQ(fillers.size(), 32u);
  for (const auto& [counts, draws] : {std::pair{keys, 4.0}, {values, 63.0}, {fillers, 118.0}}) {
    const double mean = 300 * draws / static_cast<double>(counts.size());
    for (const auto& [token, count] : counts)
      EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << token;
  }
}

// Ten positions of noise are 3 pairs and 4 fillers: the needle is the middle one of 7 items, and
// the two others are any of the 15 pairs of places left.
TEST(Needle, EverySetOfPlacesOfTheOthersIsEquallyLikely) {
  const auto task = make(64, 11, "noise", 0.5, 2);
  std::map<std::vector<size_t>, double> sets;
  for (int64_t i = 0; i < 3000; i++) sets[read(task->example(1, Split::train, i), 32, 64).pairs]++;
  EXPECT_EQ(sets.size(), 15u);
  for (const auto& [places, count] : sets) {
    EXPECT_EQ(std::count(places.begin(), places.end(), 3u), 1);
    EXPECT_LT(std::abs(count - 200), 5 * std::sqrt(200.0));
  }
}

TEST(Needle, TheEvidenceDecidesAndTheValuesOfOthersAreFree) {
  const auto task = make(256, 127);
  Rng random = rng(1, "free");
  for (int64_t i = 0; i < 300; i++) {
    Example e = task->example(3, Split::test, i);
    const auto value = static_cast<size_t>(e.evidence[1]);
    for (size_t p = 1; p < e.tokens.size(); p += 2)
      if (p != value) e.tokens[p] = static_cast<int32_t>(random.between(128, 255));
    ASSERT_EQ(e.tokens[find_key(e.tokens) + 1], e.target.back());
    e.tokens.back() = e.tokens[value > 1 ? 0 : 2];  // another key
    ASSERT_NE(find_key(e.tokens) + 1, value);
  }
}

TEST(Needle, OneKeyIsAskedForInEveryExampleAndTheOthersStayUniform) {
  const auto task = make(64, 127, "noise", -1, 7, "one");
  std::map<int32_t, double> others;
  for (int64_t i = 0; i < 1000; i++) {
    const Example e = task->example(1, Split::train, i);
    ASSERT_EQ(e.tokens.back(), 1);
    const Haystack found = read(e, 32, 64);
    ASSERT_EQ(std::set(found.keys.begin(), found.keys.end()).size(), 8u);
    for (const int32_t key : found.keys)
      if (key != 1) others[key]++;
  }
  EXPECT_EQ(others.size(), 30u);
  const double mean = 7000.0 / 30;
  for (const auto& [key, count] : others)
    EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << key;
}

TEST(Needle, LengthsAreUniformFromTheShortest) {
  const auto noise = make(64, 40, "noise", -1, 3, "many", 21);
  const auto pairs = make(64, 40, "pairs", -1, 0, "one", 21);
  std::map<size_t, double> sizes;
  for (int64_t i = 0; i < 2000; i++) {
    const Example e = noise->example(1, Split::train, i),
                  other = pairs->example(1, Split::train, i);
    sizes[e.tokens.size()]++;
    ASSERT_EQ(read(e, 32, 64).keys.size(), 4u);
    for (const Example& each : {e, other}) {
      const size_t query = each.tokens.size() - 1;
      ASSERT_EQ(each.target[query], each.tokens[find_key(each.tokens) + 1]);
      ASSERT_EQ(each.target.size(), 40u);
    }
    ASSERT_EQ(other.tokens.size() % 2, 1u);
  }
  EXPECT_EQ(sizes.size(), 20u);
  for (const auto& [size, count] : sizes)
    EXPECT_LT(std::abs(count - 100), 5 * std::sqrt(100.0)) << size;
}

TEST(Needle, DepthIsUniformOrAsAsked) {
  constexpr int kCount = 6300;
  const auto anywhere = make(256, 127);
  std::map<double, double> depths;
  for (int64_t i = 0; i < kCount; i++)
    depths[anywhere->example(5, Split::train, i).slices.at("depth")]++;
  EXPECT_EQ(depths.size(), 63u);
  EXPECT_EQ(depths.begin()->first, 0);
  EXPECT_EQ(depths.rbegin()->first, 1);
  for (const auto& [depth, count] : depths) EXPECT_LT(std::abs(count - 100), 50) << depth;
  struct Asked {
    double depth;
    int32_t in_pairs, in_noise;  // where the key stands: of 63 pairs, of 125 places
  };
  for (const auto& [depth, in_pairs, in_noise] :
       {Asked{0, 0, 0}, {0.25, 2 * 16, 31}, {0.5, 2 * 31, 62}, {1, 2 * 62, 124}}) {
    EXPECT_EQ(make(256, 127, "pairs", depth)->example(1, Split::test, 0).evidence[0], in_pairs);
    EXPECT_EQ(make(256, 127, "noise", depth, 0)->example(1, Split::test, 0).evidence[0], in_noise);
  }
}

TEST(Needle, TheShapeDoesNotChangeWithTheLength) {
  for (const int64_t length : {127, 128, 254, 508, 1016}) {
    const TaskShape shape = make(1024, length)->shape();
    EXPECT_EQ(shape.length, length);
    EXPECT_EQ(shape.vocab, 1024);
    EXPECT_EQ(shape.classes, 1024);
    EXPECT_TRUE(shape.causal && shape.per_token);
  }
}

TEST(Needle, Shortcuts) {
  constexpr int kTest = 2000;
  // One value of `pairs` is right, and each of the others with odds 1/128.
  const auto expect_random_value = [&](const std::vector<Shortcut>& shortcuts, double pairs) {
    EXPECT_NEAR(score_of(shortcuts, "random value of the context"), (1 + (pairs - 1) / 128) / pairs,
                5 * std::sqrt((pairs - 1) / 128 / kTest) / pairs);
  };
  const std::vector<Shortcut> pairs = make(256, 127)->shortcuts(1, 1000, kTest);
  expect_random_value(pairs, 63);
  EXPECT_NEAR(score_of(pairs, "likeliest position"), 1.0 / 63, 5 * std::sqrt(1.0 / 63 / kTest));
  // The question and the 7 whole pairs before it are seen; else one value of 128 is a guess.
  const double seen = 7.0 / 63 + 56.0 / 63 / 128;
  EXPECT_NEAR(score_of(pairs, "window of 16 (best)"), seen, 5 * std::sqrt(seen / kTest));
  const std::vector<Shortcut> fixed = make(256, 127, "pairs", 0.3)->shortcuts(1, 500, 500);
  EXPECT_EQ(score_of(fixed, "likeliest position"), 1);
  expect_random_value(make(256, 127, "noise")->shortcuts(1, 500, kTest), 4);
  expect_random_value(make(256, 127, "noise", -1, 0)->shortcuts(1, 500, kTest), 1);
}

TEST(Needle, BadParametersAreClearErrors) {
  const auto message = [](int64_t vocab, int64_t length, double depth) -> std::string {
    return fault_of([&] { make(vocab, length, "pairs", depth); });
  };
  EXPECT_TRUE(says(message(126, 127, -1), "63 keys, all different, of the 62 that vocab=126 has"));
  EXPECT_EQ(message(128, 127, -1), "");
  EXPECT_TRUE(says(message(256, 127, -0.5), "depth=-0.5"));
  EXPECT_TRUE(says(message(256, 127, 1.5), "depth"));
  EXPECT_NO_THROW(make(256, 127, "noise", -1, 62));
  EXPECT_THROW(make(256, 127, "noise", -1, 63), Error);
  EXPECT_THROW(make(256, 127, "noise", -1, 3, "one", 128), Error) << "shortest above longest";
  EXPECT_THROW(make(256, 127, "noise", -1, 3, "one", 8), Error) << "no room for four pairs";
}

}  // namespace
}  // namespace attn::needle_test
