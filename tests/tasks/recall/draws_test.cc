// What tasks of recall share: draws, guesses and the base class.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/guesses.h"
#include "tasks/recall/recall_task.h"
#include "tests/said.h"

namespace attn::draws_test {
namespace {

// Draws without repetition against their probabilities, and the power law against libm's.

TEST(RecallDraws, ThePowerLawIsThatOfTheMathematicsLibrary) {
  for (const double a : {0.001, 0.01, 0.37, 1.0, 2.0, 3.75, 8.0}) {
    const std::vector<double> weights = recall::power_law(500, a);
    ASSERT_EQ(weights.size(), 500u);
    for (size_t i = 0; i < weights.size(); i++) {
      const double expected = a * std::pow(static_cast<double>(i + 1), a - 1);
      EXPECT_NEAR(weights[i], expected, 1e-13 * expected) << a << " at " << i;  // 60 roundings
    }
  }
  EXPECT_TRUE(recall::power_law(0, 1).empty());
}

TEST(RecallDraws, DistinctOnesAreEveryOrderedChoiceAlike) {
  Rng random(7);
  std::map<std::vector<int32_t>, double> counts;
  constexpr int kDraws = 12000;
  for (int i = 0; i < kDraws; i++) counts[recall::distinct(random, 4, 2)]++;
  ASSERT_EQ(counts.size(), 12u);
  for (const auto& [chosen, count] : counts) {
    EXPECT_NE(chosen[0], chosen[1]);
    EXPECT_NEAR(count, kDraws / 12.0, 5 * std::sqrt(kDraws / 12.0));  // five deviations
  }
  const std::vector<int32_t> all = recall::distinct(random, 9, 9);
  EXPECT_EQ(std::set<int32_t>(all.begin(), all.end()).size(), 9u);
}

TEST(RecallDraws, WeightsDecideAmongThoseLeft) {
  Rng random(8);
  const std::vector<double> weights = {1, 0, 3, 6};
  constexpr double kDraws = 20000;
  std::map<size_t, double> first, second_after_last;
  for (int i = 0; i < static_cast<int>(kDraws); i++) {
    const std::vector<size_t> chosen = recall::weighted_distinct(random, weights, 3);
    ASSERT_EQ(std::set<size_t>(chosen.begin(), chosen.end()), (std::set<size_t>{0, 2, 3}));
    first[chosen[0]]++;
    if (chosen[0] == 3) second_after_last[chosen[1]]++;
  }
  EXPECT_NEAR(first[0], 0.1 * kDraws, 5 * std::sqrt(0.1 * kDraws));
  EXPECT_NEAR(first[2], 0.3 * kDraws, 5 * std::sqrt(0.3 * kDraws));
  EXPECT_NEAR(second_after_last[0], 0.25 * first[3], 5 * std::sqrt(0.25 * first[3]));
}

TEST(RecallDraws, TooFewInputsAreAClearError) {
  EXPECT_NO_THROW(recall::check_inputs("toy", 2, 20, "length"));
  EXPECT_NO_THROW(recall::check_inputs("toy", 1 << 20, 1, "length"));
  for (const auto& [symbols, places] : {std::pair{2, 19}, std::pair{1, 1000}, std::pair{1023, 2}})
    EXPECT_TRUE(says(fault_of([&] { recall::check_inputs("toy", symbols, places, "length"); }),
                     "length must be larger"));
}

// The rules on examples small enough to work out by hand.

const std::vector<int32_t> kTokens = {1, 5, 2, 6, 1, 7, 2, 1};

TEST(RecallGuesses, AfterTheLatestEqualRun) {
  EXPECT_EQ(recall::after_latest(kTokens, 7, 1), 7);   // 1 stood last at 4
  EXPECT_EQ(recall::after_latest(kTokens, 4, 1), 5);   // and before that at 0
  EXPECT_EQ(recall::after_latest(kTokens, 0, 1), -1);  // nothing before
  EXPECT_EQ(recall::after_latest(kTokens, 5, 1), -1);  // 7 is new
  const std::vector<int32_t> pairs = {1, 2, 8, 3, 2, 9, 1, 2};
  EXPECT_EQ(recall::after_latest(pairs, 7, 1), 9);
  EXPECT_EQ(recall::after_latest(pairs, 7, 2), 8);
  EXPECT_EQ(recall::after_latest(pairs, 0, 2), -1);
  EXPECT_EQ(recall::after_latest({4, 4, 4}, 2, 2), 4);  // runs may overlap
}

TEST(RecallGuesses, TheCommonestWithinARange) {
  EXPECT_EQ(recall::commonest(kTokens, 7, 1, 9), 1);
  EXPECT_EQ(recall::commonest(kTokens, 7, 2, 9), 2);
  EXPECT_EQ(recall::commonest(kTokens, 3, 5, 9), 5);  // once each: the smallest
  EXPECT_EQ(recall::commonest(kTokens, 0, 5, 9), -1);
  EXPECT_EQ(recall::commonest({9, 9, 3}, 2, 1, 8), 3);
}

TEST(RecallGuesses, ScoresAreMeansOverTheScoredLabels) {
  const Example e{.tokens = {1, 5, 1, 1}, .target = {-1, 5, 4, 1}};
  const auto here = [](const Example& x, size_t i) { return x.tokens[i]; };
  EXPECT_DOUBLE_EQ(recall::rule_score({e}, here), 2.0 / 3);
  const auto before = [](const Example& x, size_t i) {
    return std::vector<int32_t>(x.tokens.begin(), x.tokens.begin() + static_cast<ptrdiff_t>(i));
  };
  EXPECT_DOUBLE_EQ(recall::random_choice_score({e, e}, before), (0 + 0 + 2.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(recall::random_token_score({e}, 1, 5), (0 + 0 + 2.0 / 3) / 3);
  EXPECT_DOUBLE_EQ(recall::random_token_score({e}, 5, 9), 0);
  EXPECT_DOUBLE_EQ(recall::commonest_token_score({e}, 1, 4), 1.0 / 3);
  EXPECT_DOUBLE_EQ(recall::commonest_token_score({e}, 2, 9), 1.0 / 3);
  const auto none = [](const Example&, size_t) { return std::vector<int32_t>{}; };
  EXPECT_EQ(recall::random_choice_score({e}, none), 0);
}

// The labels, lengths and distances of recall tasks on examples small enough to check by hand.

const std::vector<ParamSpec> kSpecs = {{"length", 6, "longest sequence", 1, 100},
                                       {"min_length", 0, "shortest sequence", 0, 100},
                                       {"train_examples", 1, "unused", 1, 100}};

Params params(int64_t length, int64_t min_length) {
  return Params("toy", kSpecs, {{"length", length}, {"min_length", min_length}});
}

// Position 3 is asked for token 0, position 4 for token 3.
class Toy final : public recall::RecallTask {
 public:
  explicit Toy(const Params& p) : RecallTask(p, 10, 9) {}
  Example labelled() const {
    Example e{.tokens = {5, 6, 7, 8, 9}};
    clear_labels(e);
    set_label(e, 4, 3);
    set_label(e, 3, 0);
    return e;
  }

 private:
  Example do_example(Rng&) const override { return labelled(); }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }
};

TEST(RecallTask, AskedPositionsHaveALabelAndADistance) {
  const Toy task(params(6, 0));
  const Example e = task.labelled();
  EXPECT_EQ(e.target, (std::vector<int32_t>{-1, -1, -1, 5, 8, -1}));
  EXPECT_EQ(e.distances, (std::vector<int32_t>{-1, -1, -1, 3, 1, -1}));
  const recall::Gaps gaps = recall::gaps_of(e);
  EXPECT_EQ(gaps.labels, 2);
  EXPECT_EQ(gaps.mean, 2);
  EXPECT_EQ(gaps.least, 1);
  EXPECT_EQ(gaps.most, 3);
}

TEST(RecallTask, TheShapeIsCausalWithALabelPerPosition) {
  const TaskShape shape = Toy(params(6, 0)).shape();
  EXPECT_EQ(shape.length, 6);
  EXPECT_EQ(shape.vocab, 10);
  EXPECT_EQ(shape.classes, 9);
  EXPECT_TRUE(shape.per_token && shape.causal);
}

TEST(RecallTask, LengthsAreDrawnFromTheirRange) {
  const recall::LengthRange some(params(6, 4), "toy", 2), one(params(6, 0), "toy", 2);
  EXPECT_EQ(some.least(), 4);
  EXPECT_EQ(one.least(), 6);
  Rng random(3), untouched(3);
  EXPECT_EQ(one.draw(random), 6);
  EXPECT_EQ(random.bits(), untouched.bits());
  std::set<int64_t> drawn;
  for (int i = 0; i < 100; i++) drawn.insert(some.draw(random));
  EXPECT_EQ(drawn, (std::set<int64_t>{4, 5, 6}));
  for (const int64_t wrong : {1, 7})
    EXPECT_THROW(recall::LengthRange(params(6, wrong), "toy", 2), Error);
}

}  // namespace
}  // namespace attn::draws_test
