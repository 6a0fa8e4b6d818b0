// retrieval against a counter of words of its own, and the dial from counting to long-range by what
// counting without the subject scores.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::retrieval_test {
namespace {

std::unique_ptr<Task> make(std::map<std::string, ParamValue> given) {
  return find_task("retrieval").build(given);
}

std::string bytes(const std::vector<int32_t>& tokens) {
  std::string text;
  for (const int32_t token : tokens) text.push_back(static_cast<char>(token - 1));
  return text;
}

bool is_vowel(char c) { return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u'; }

// The letter of a topical word, or ' '.
char letter_of(const std::string& word) {
  if (word.size() != 4 || word[0] != word[2] || !is_vowel(word[1]) || !is_vowel(word[3]))
    return ' ';
  return word[0];
}

struct Reading {
  bool quartet = false;
  int mentions = 0;
  std::map<char, int> words;  // by letter
  int topic = 0, lead = 0, of_subject = 0, of_other = 0, topic_of_other = 0;
  std::vector<int32_t> evidence;
};

// The topic among the letters of one subject, and by how much it leads.
void rank(const std::map<char, int>& words, const std::string& letters, int& topic, int& lead,
          int& total) {
  std::vector<std::pair<int, int>> ranked;  // count, topic
  for (size_t i = 0; i < letters.size(); i++) {
    const auto found = words.find(letters[i]);
    ranked.emplace_back(found == words.end() ? 0 : found->second, static_cast<int>(i));
    total += ranked.back().first;
  }
  std::sort(ranked.rbegin(), ranked.rend());
  topic = ranked[0].second;
  lead = ranked[0].first - ranked[1].first;
}

Reading read(const std::string& text, int32_t begin) {
  Reading r;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    r.mentions += word == "film" || word == "quartet";
    r.quartet = r.quartet || word == "quartet";
    if (letter_of(word) != ' ') r.words[letter_of(word)]++;
  }
  const std::string film = "wckz", quartet = "ydvp";
  const std::string &own = r.quartet ? quartet : film, &other = r.quartet ? film : quartet;
  int ignored = 0;
  rank(r.words, own, r.topic, r.lead, r.of_subject);
  rank(r.words, other, r.topic_of_other, ignored, r.of_other);
  int32_t at = begin;
  std::istringstream again(text);
  for (std::string word; again >> word; at += static_cast<int32_t>(word.size()) + 1)
    if (word == "film" || word == "quartet" || letter_of(word) == own[static_cast<size_t>(r.topic)])
      for (size_t i = 0; i < word.size(); i++) r.evidence.push_back(at + static_cast<int32_t>(i));
  return r;
}

TEST(Retrieval, TheReaderKnowsTheDefinition) {
  EXPECT_EQ(read("wawe cocu film coci yaya", 0).topic, 1);
  EXPECT_EQ(read("wawe cocu quartet coci yaya", 0).topic, 0);
  EXPECT_EQ(read("zuza film", 7).evidence, (std::vector<int32_t>{7, 8, 9, 10, 12, 13, 14, 15}));
  EXPECT_EQ(letter_of("have"), ' ');
}

TEST(Retrieval, LabelsEvidenceAndLeadAgreeWithTheReaderAtEverySetting) {
  const std::map<std::string, ParamValue> settings[] = {
      {{"preset", std::string("small")}},
      {{"preset", std::string("standard")}, {"range", 1.0}},
      {{"length", int64_t{300}}, {"topics", int64_t{3}}, {"main", 0.5}, {"mentions", int64_t{1}}},
      {{"length", int64_t{200}}, {"topics", int64_t{2}}, {"range", 0.0}}};
  for (const auto& given : settings) {
    const auto task = make(given);
    const auto length = static_cast<int32_t>(task->shape().length);
    const double range = task->params().number("range");
    constexpr int kCount = 400;
    int same = 0, differing = 0;
    for (int64_t i = 0; i < kCount; i++) {
      const Example e = task->example(3, Split::train, i);
      const Reading a = read(bytes(e.tokens), 0), b = read(bytes(e.second), length);
      ASSERT_EQ(e.target, std::vector<int32_t>{a.topic == b.topic ? 1 : 0});
      ASSERT_GT(std::min(a.lead, b.lead), 0);
      ASSERT_EQ(a.of_subject, a.of_other);
      ASSERT_NEAR(e.slices.at("lead"), static_cast<double>(std::min(a.lead, b.lead)) / a.of_subject,
                  1e-12);
      std::vector<int32_t> evidence = a.evidence;
      evidence.insert(evidence.end(), b.evidence.begin(), b.evidence.end());
      ASSERT_EQ(e.evidence, evidence);
      ASSERT_EQ(static_cast<int32_t>(e.tokens.size()), length);
      ASSERT_EQ(static_cast<int32_t>(e.second.size()), length);
      same += e.target[0];
      differing += (a.topic != a.topic_of_other) + (b.topic != b.topic_of_other);
    }
    EXPECT_NEAR(same, kCount / 2, 5 * 0.5 * std::sqrt(kCount));
    const double documents = 2 * kCount;
    EXPECT_NEAR(differing / documents, range,
                5 * std::sqrt(range * (1 - range) / documents) + 1e-12);
  }
}

TEST(Retrieval, EvidenceIsSpreadOverBothDocuments) {
  const auto task = make({{"preset", std::string("standard")}});
  double span = 0;
  for (int64_t i = 0; i < 100; i++)
    span += task->example(1, Split::test, i).distances.at(0) / 100.0;
  EXPECT_GT(span, 900);
}

constexpr int kScored = 600;

std::vector<Shortcut> scores(double range) {
  return make({{"preset", std::string("small")}, {"range", range}})->shortcuts(1, 1000, kScored);
}

TEST(Retrieval, TheDialGoesFromCountingToLongRange) {
  const double noise = 5 * 0.5 / std::sqrt(kScored);
  const std::vector<Shortcut> local = scores(0), far = scores(1);
  EXPECT_EQ(score_of(local, "topics of one subject"), 1);
  EXPECT_GT(score_of(local, "most frequent words"), 0.99);
  EXPECT_LT(score_of(far, "topics of one subject"), 0.75);
  EXPECT_LT(score_of(far, "most frequent words"), 0.75);
  EXPECT_NEAR(score_of(far, "same subject"), 0.5, noise);
  EXPECT_NEAR(score_of(local, "same subject"), 0.5, noise);
}

TEST(Retrieval, ALevelIsThatOfLongRangeArenaAndErrorsAreClear) {
  const auto task = make({{"preset", std::string("lra")}});
  EXPECT_EQ(task->shape().length, 4000);
  EXPECT_EQ(task->shape().vocab, 257);
  EXPECT_TRUE(task->shape().pairs);
  EXPECT_EQ(task->train_examples(), 147086);
  EXPECT_TRUE(says(fault_of([&] { make({{"topics", int64_t{4}}, {"main", 0.2}}); }), "main=0.2"));
}

}  // namespace
}  // namespace attn::retrieval_test
