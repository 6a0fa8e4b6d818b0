// regular_language against a reader who knows the automaton, which is drawn again from the stream
// of the example.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tasks/language/automaton.h"
#include "tests/said.h"
#include "tests/tasks/score_of.h"

namespace attn::regular_language_test {
namespace {

using language::Automaton;
using language::Strings;

std::unique_ptr<Task> make(const std::string& preset) {
  return find_task("regular_language").build({{"preset", preset}});
}

language::AutomatonSizes sizes_of(const Task& task) {
  const Params& p = task.params();
  return {.least_states = p.integer("min_states"),
          .states = p.integer("states"),
          .least_symbols = p.integer("min_symbols"),
          .symbols = p.integer("symbols"),
          .out_degree = p.integer("out_degree"),
          .longest = p.integer("longest")};
}

TEST(RegularLanguage, LabelsAreTheNextTokens) {
  const auto task = make("small");
  for (int64_t i = 0; i < 50; i++) {
    const Example e = task->example(1, Split::train, i);
    ASSERT_EQ(std::ssize(e.tokens), 64);
    for (size_t at = 0; at + 1 < e.tokens.size(); at++) {
      ASSERT_EQ(e.target[at], e.tokens[at + 1] - 1);
      ASSERT_EQ(e.distances[at], static_cast<int32_t>(at));
    }
  }
}

// Each label can come next, the separator is where a string may end, and what the reader expects on
// average is what comes.
TEST(RegularLanguage, AReaderWhoKnowsTheAutomatonExpectsTheSliceEntropy) {
  const auto task = make("standard");
  const language::AutomatonSizes sizes = sizes_of(*task);
  const auto separator = static_cast<int32_t>(sizes.symbols + 1);
  double bits = 0, expected = 0, squares = 0;
  constexpr int64_t kExamples = 400;
  for (int64_t i = 0; i < kExamples; i++) {
    const Example e = task->any_example(2, Split::test, i);
    Rng random = rng(2, "example/test", static_cast<uint64_t>(i));
    const Automaton automaton = language::draw_automaton(sizes, random);
    ASSERT_EQ(e.slices.at("states"), static_cast<double>(automaton.edges.size()));
    ASSERT_EQ(e.slices.at("symbols"), static_cast<double>(automaton.symbols));
    Strings strings(automaton, sizes.longest, separator);
    double own = 0, mean = 0;
    for (size_t at = 0; at < e.tokens.size(); at++) {
      strings.read(e.tokens[at]);
      const double p = strings.probability(e.target[at] + 1);
      ASSERT_GT(p, 0) << "example " << i << ", position " << at;
      own -= std::log2(p) / static_cast<double>(e.tokens.size());
      mean += strings.entropy() / static_cast<double>(e.tokens.size());
    }
    const double entropy = e.slices.at("entropy");
    ASSERT_NEAR(entropy, mean, 1e-9) << "of the labels, each behind the token of its position";
    bits += own / kExamples;
    expected += entropy / kExamples;
    squares += (own - entropy) * (own - entropy) / kExamples;
  }
  EXPECT_NEAR(bits, expected, 5 * std::sqrt(squares / kExamples));
  EXPECT_LT(std::sqrt(squares / kExamples), 0.01);
}

TEST(RegularLanguage, TheDatasheetNamesTheMeanEntropyAndNoShortcutReachesIt) {
  for (const auto& [preset, figure] :
       std::map<std::string, double>{{"standard", 1.31}, {"paper", 1.28}, {"small", 1.08}}) {
    const auto task = make(preset);
    double mean = 0;
    constexpr int64_t kExamples = 500;
    for (int64_t i = 0; i < kExamples; i++)
      mean += task->example(3, Split::test, i).slices.at("entropy") / kExamples;
    EXPECT_NEAR(mean, figure, 0.06) << preset;
    EXPECT_TRUE(
        says(find_task("regular_language").datasheet,
             fmt::format("{:.2f}{} at {}", figure, preset == "standard" ? " bits" : "", preset)));
    double best = task->chance();
    for (const Shortcut& shortcut : task->shortcuts(3, 200, 200))
      best = std::min(best, shortcut.score);
    EXPECT_GT(best, mean + 0.2) << preset;
    EXPECT_LT(best, 0.9 * task->chance()) << preset << ": the context tells something";
  }
}

TEST(RegularLanguage, SettingsThatDoNotGoTogetherGetOneLine) {
  const auto fault = [](const std::map<std::string, ParamValue>& given) {
    return fault_of([&] { find_task("regular_language").build(given); });
  };
  EXPECT_EQ(fault({{"states", int64_t{3}}, {"min_states", int64_t{4}}}),
            "regular_language: min_states=4 must be at most states=3");
  EXPECT_EQ(fault({{"min_symbols", int64_t{9}}}),
            "regular_language: min_symbols=9 must be at most symbols=8");
  EXPECT_TRUE(says(fault({{"states", int64_t{1}}}), "states"));
  const auto two_inputs = find_task("regular_language")
                              .build({{"states", int64_t{2}},
                                      {"min_states", int64_t{2}},
                                      {"symbols", int64_t{2}},
                                      {"min_symbols", int64_t{1}},
                                      {"longest", int64_t{1}}});
  std::string refused;
  for (const Split split : {Split::train, Split::validation, Split::test})
    refused += fault_of([&] { two_inputs->example(1, split, 0); });
  EXPECT_TRUE(says(refused, "too few")) << "one symbol and the separator, again and again";
}

}  // namespace
}  // namespace attn::regular_language_test
