// phonebook against a search for each prefix.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/said.h"
#include "tests/tasks/score_of.h"

namespace attn::phonebook_test {
namespace {

std::unique_ptr<Task> make(const std::map<std::string, ParamValue>& more,
                           const char* preset = "small") {
  std::map<std::string, ParamValue> given = more;
  given.emplace("preset", std::string(preset));
  return find_task("phonebook").build(given);
}

TEST(Phonebook, ASearchSolvesIt) {
  for (const char* preset : {"small", "standard"}) {
    const auto task = make({}, preset);
    const Params& params = task->params();
    const auto alphabet = static_cast<int32_t>(params.integer("alphabet"));
    const auto letters = static_cast<size_t>(params.integer("letters")),
               prefix = static_cast<size_t>(params.integer("prefix")),
               digits = static_cast<size_t>(params.integer("digits")), entry = letters + digits;
    for (int64_t i = 0; i < 10'000; i++) {
      const Example e = task->example(6, Split::test, i);
      ASSERT_EQ(e.evidence.size() % entry, 0u);
      size_t p = e.evidence.size(), labels = 0;
      int64_t questions = 0;
      double later = 0;
      for (; p < e.tokens.size(); questions++) {
        ASSERT_EQ(e.tokens[p++], alphabet + 11);
        size_t found = e.evidence.size();
        for (size_t at = 0; at < e.evidence.size(); at += entry) {
          if (!std::equal(e.tokens.begin() + static_cast<ptrdiff_t>(at),
                          e.tokens.begin() + static_cast<ptrdiff_t>(at + prefix),
                          e.tokens.begin() + static_cast<ptrdiff_t>(p)))
            continue;
          ASSERT_EQ(found, e.evidence.size()) << "two entries start alike";
          found = at;
        }
        ASSERT_LT(found, e.evidence.size());
        later += static_cast<double>((e.evidence.size() - found) / entry - 1);
        p += prefix;
        for (size_t d = 0; d < digits; d++, p++, labels++) {
          const size_t source = found + letters + d;
          ASSERT_GT(e.tokens[source], alphabet);
          ASSERT_LE(e.tokens[source], alphabet + 10);
          ASSERT_EQ(e.tokens[p], e.tokens[source]);
          ASSERT_EQ(e.target[p - 1], e.tokens[source]);
          ASSERT_EQ(e.distances[p - 1], p - 1 - source);
        }
      }
      ASSERT_EQ(questions, params.integer("questions"));
      ASSERT_EQ(labels, static_cast<size_t>(questions) * digits);
      ASSERT_DOUBLE_EQ(e.slices.at("mean_later"), later / static_cast<double>(questions));
      size_t scored = 0;
      for (const int32_t label : e.target) scored += label != kIgnoredLabel;
      ASSERT_EQ(scored, labels);
    }
  }
}

TEST(Phonebook, LettersAndDigitsAreUniform) {
  const auto task = make({{"letters", 3}, {"length", 36}});
  std::map<int32_t, double> letters, digits;
  constexpr int kCount = 4000;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(6, Split::train, i);
    letters[e.tokens[2]]++;  // the third letter, which no other entry binds
    digits[e.tokens[3]]++;
  }
  ASSERT_EQ(letters.size(), 6u);
  ASSERT_EQ(digits.size(), 10u);
  for (const auto& counts : {letters, digits}) {
    const double mean = kCount / static_cast<double>(counts.size());
    for (const auto& [token, count] : counts) EXPECT_NEAR(count, mean, 5 * std::sqrt(mean));
  }
}

TEST(Phonebook, ALongerSequenceHasMoreEntries) {
  EXPECT_EQ(make({})->example(1, Split::test, 0).evidence.size(), 20u);  // 5 of 4 in 30 - 2·5
  EXPECT_EQ(make({{"length", 60}})->example(1, Split::test, 0).evidence.size(), 48u);
  EXPECT_EQ(make({{"length", 60}})->shape().vocab, make({})->shape().vocab);
}

// By the last token alone: of five entries one is right, and each of the other four fits with odds
// near 1/6 (a letter; names that start alike are drawn again) or 1/10 (a digit).
TEST(Phonebook, LessThanThePrefixFindsSeveralEntries) {
  const std::vector<Shortcut> found = make({})->shortcuts(1, 500, 2000);
  const auto expected = [](double odds) {
    double sum = 0, ways = 1;
    for (int others = 0; others <= 4; others++) {
      const double share = ways * std::pow(odds, others) * std::pow(1 - odds, 4 - others);
      sum += share * (1 + 0.1 * others) / (1 + others);
      ways = ways * (4 - others) / (others + 1);
    }
    return sum;
  };
  EXPECT_NEAR(score_of(found, "entries by the last token"), (expected(1.0 / 7) + expected(0.1)) / 2,
              0.03);  // 5 of the 35 other prefixes end in the letter
  const std::vector<Shortcut> longer = make({}, "standard")->shortcuts(1, 500, 500);
  EXPECT_GT(score_of(longer, "entries by the last 2 tokens"),
            score_of(longer, "entries by the last token"));
  EXPECT_LT(score_of(longer, "entries by the last 2 tokens"), 0.9);
}

TEST(Phonebook, BadParametersAreClearErrors) {
  const auto message = [](const std::map<std::string, ParamValue>& more) -> std::string {
    return fault_of([&] { make(more); });
  };
  EXPECT_TRUE(says(message({{"prefix", 4}}), "prefix=4 is longer than a name, letters=2"));
  EXPECT_TRUE(says(message({{"length", 14}}), "has room for 1 entries beside questions=2"));
  EXPECT_TRUE(says(message({{"alphabet", 2}}), "tell 4 names apart; for 5 entries at least 10"));
  EXPECT_TRUE(says(message({{"prefix", 1}, {"digits", 1}, {"questions", 1}, {"length", 12}}),
                   "3 entries of 1 letters and 1 digits make only 120000 different inputs"));
  EXPECT_EQ(message({}), "");
}

}  // namespace
}  // namespace attn::phonebook_test
