// text against a reader of its own that knows the words and the definition alone, and the dial from
// local to long-range by what counting without the subject scores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::text_test {
namespace {

std::unique_ptr<Task> make(std::map<std::string, ParamValue> given) {
  return find_task("text").build(given);
}

std::string bytes(const std::vector<int32_t>& tokens) {
  std::string text;
  for (const int32_t token : tokens) text.push_back(static_cast<char>(token - 1));
  return text;
}

bool listed(const std::string& words, const std::string& word) {
  std::istringstream all(words);
  for (std::string each; all >> each;)
    if (each == word) return true;
  return false;
}

// 'f' and 'q' for a word about the film or the quartet, else ' '.
char about(const std::string& word) {
  if (word == "film" || listed("weak bleak murky blank shaky stark creaky lacking", word) ||
      listed("vivid brave lively vast clever vital moving velvet", word))
    return 'f';
  if (word == "quartet" || listed("limp damp cheap tepid sloppy drippy pompous insipid", word) ||
      listed("zesty dazzling razor blazing amazing ablaze bronze azure", word))
    return 'q';
  return ' ';
}

int praise(const std::string& word) {
  if (word == "film" || word == "quartet" || about(word) == ' ') return 0;
  return word.find('v') != std::string::npos || word.find('z') != std::string::npos ? 1 : -1;
}

struct Verdict {
  char subject = ' ';
  std::map<char, int> net;
  int mentions = 0, opinions = 0;
  std::vector<int32_t> evidence;
  int label() const { return net.at(subject) > 0 ? 1 : 0; }
};

Verdict judge(const std::string& text) {
  Verdict verdict;
  verdict.subject = text.find("film") != std::string::npos ? 'f' : 'q';
  std::istringstream words(text);
  bool turned = false;
  int32_t at = 0, turned_at = 0;
  for (std::string word; words >> word; at += static_cast<int32_t>(word.size()) + 1) {
    const char subject = about(word);
    const int32_t begin = turned && praise(word) != 0 ? turned_at : at;
    verdict.net[subject] += turned ? -praise(word) : praise(word);
    verdict.mentions += word == "film" || word == "quartet";
    verdict.opinions += praise(word) != 0;
    if (subject == verdict.subject)
      for (int32_t i = begin; i < at + static_cast<int32_t>(word.size()); i++)
        verdict.evidence.push_back(i);
    turned = word == "not";
    turned_at = at;
  }
  return verdict;
}

TEST(Text, TheReaderKnowsTheDefinition) {
  EXPECT_EQ(judge("a film so vivid in weak vast zesty").label(), 1);
  EXPECT_EQ(judge("film not vivid limp not weak not vast").label(), 0);
  EXPECT_EQ(judge("vivid razor damp tepid quartet vivid").label(), 0);
  EXPECT_EQ(judge("film not vivid").evidence,
            (std::vector<int32_t>{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
}

TEST(Text, LabelsAndEvidenceAgreeWithTheReaderAtEverySetting) {
  const std::map<std::string, ParamValue> settings[] = {
      {{"preset", std::string("small")}},
      {{"preset", std::string("standard")}, {"range", 1.0}},
      {{"length", int64_t{300}}, {"range", 0.0}, {"negation", 0.5}, {"against", 0.5}},
      {{"length", int64_t{500}}, {"opinions", int64_t{4}}, {"mentions", int64_t{1}}}};
  for (const auto& given : settings) {
    const auto task = make(given);
    constexpr int kCount = 400;
    int good = 0;
    for (int64_t i = 0; i < kCount; i++) {
      const Example e = task->example(3, Split::train, i);
      const std::string text = bytes(e.tokens);
      const Verdict verdict = judge(text);
      ASSERT_EQ(e.target, std::vector<int32_t>{verdict.label()}) << text;
      ASSERT_EQ(e.evidence, verdict.evidence) << text;
      ASSERT_EQ(static_cast<int64_t>(text.size()), task->shape().length);
      const char other = verdict.subject == 'f' ? 'q' : 'f';
      ASSERT_NE(verdict.net.at(verdict.subject), 0);
      ASSERT_NEAR(e.slices.at("margin"),
                  2.0 * std::abs(verdict.net.at(verdict.subject)) / verdict.opinions, 1e-12);
      ASSERT_EQ(e.slices.at("opposed"),
                (verdict.net.at(other) > 0) != (verdict.net.at(verdict.subject) > 0) ? 1.0 : 0.0);
      good += e.target[0];
    }
    EXPECT_NEAR(good, kCount / 2, 5 * 0.5 * std::sqrt(kCount));
  }
}

TEST(Text, LooksLikeTextAndSpreadsItsEvidence) {
  const auto task = make({{"preset", std::string("standard")}});
  double span = 0;
  for (int64_t i = 0; i < 200; i++) {
    const Example e = task->example(1, Split::test, i);
    const std::string text = bytes(e.tokens);
    EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz "), std::string::npos);
    EXPECT_FALSE(says(text, "  "));
    EXPECT_TRUE(text.front() != ' ' && text.back() != ' ');
    span += e.distances.at(0) / 200.0;
  }
  EXPECT_GT(span, 900);
}

constexpr int kScored = 600;

std::vector<Shortcut> scores(double range) {
  return make({{"preset", std::string("small")}, {"range", range}})->shortcuts(1, 1000, kScored);
}

// Counting without the subject is right unless the other subject's majority is opposed and larger:
// always at 0, half of the time at 1; how large a majority is does not depend on the label.
TEST(Text, TheDialGoesFromLocalToLongRange) {
  const double noise = 5 * 0.5 / std::sqrt(kScored);
  EXPECT_EQ(score_of(scores(0), "good opinions"), 1);
  EXPECT_NEAR(score_of(scores(0.5), "good opinions"), 0.75, noise + 0.05);  // ties
  const std::vector<Shortcut> far = scores(1);
  for (const char* name : {"good opinions", "subject named", "last opinion"})
    EXPECT_NEAR(score_of(far, name), 0.5, noise) << name;
}

TEST(Text, NegationsAndCountsFollowTheParameters) {
  const auto task = make({{"preset", std::string("standard")}, {"negation", 0.3}});
  double turned = 0, opinions = 0;
  for (int64_t i = 0; i < 300; i++) {
    const std::string text = bytes(task->example(2, Split::validation, i).tokens);
    const Verdict verdict = judge(text);
    EXPECT_EQ(verdict.mentions, 8);
    EXPECT_EQ(verdict.opinions, 2 * 33);
    opinions += verdict.opinions;
    for (size_t at = text.find("not "); at != std::string::npos; at = text.find("not ", at + 1))
      turned++;
  }
  EXPECT_NEAR(turned / opinions, 0.3, 5 * std::sqrt(0.3 * 0.7 / opinions));
}

TEST(Text, ALevelIsThatOfLongRangeArenaAndErrorsAreClear) {
  const auto task = make({{"preset", std::string("lra")}});
  EXPECT_EQ(task->shape().length, 4000);
  EXPECT_EQ(task->shape().vocab, 257);
  EXPECT_EQ(task->train_examples(), 25000);
  EXPECT_EQ(make({})->shape().length, 1024) << "the standard level, where none is named";
  EXPECT_TRUE(says(fault_of([&] {
                     make({{"length", int64_t{100}}, {"opinions", int64_t{9}}});
                   }),
                   "opinions=9"));
}

}  // namespace
}  // namespace attn::text_test
