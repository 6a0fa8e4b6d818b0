// tagging against a parser that tries every reading of a sentence, written from the datasheet: one
// reading each, and its roles are the labels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::tagging_test {
namespace {

using Given = std::map<std::string, ParamValue>;
std::unique_ptr<Task> make(const Given& given) { return find_task("tagging").build(given); }

enum { kAdjective, kSubject, kObject, kVerb, kRelativeVerb };
using Words = std::vector<int32_t>;
struct Reading {
  size_t end;
  Words roles;  // of the tokens read, -1 at those that are no words
};
using Readings = std::vector<Reading>;

// Every way to read a part of the grammar from a place on; words may be all classes, or their own.
class Parser {
 public:
  Parser(const Words& tokens, bool any) : tokens_(tokens), any_(any) {}

  Readings sentence(size_t at) const {
    const Readings subject = then(then({{at, {}}}, phrase_with_clause(kSubject)), word(kVerb));
    Readings all = then(subject, token({1}));
    append(all, then(then(subject, phrase_with_clause(kObject)), token({1})));
    return all;
  }

 private:
  using Part = std::function<Readings(size_t)>;

  static void append(Readings& all, const Readings& more) {
    all.insert(all.end(), more.begin(), more.end());
  }
  static Readings then(const Readings& before, const Part& part) {
    Readings result;
    for (const Reading& reading : before)
      for (const Reading& next : part(reading.end)) {
        Words roles = reading.roles;
        roles.insert(roles.end(), next.roles.begin(), next.roles.end());
        result.push_back({next.end, roles});
      }
    return result;
  }
  Part token(const Words& wanted) const {
    return [this, wanted](size_t at) -> Readings {
      if (at >= tokens_.size()) return {};
      for (const int32_t one : wanted)
        if (tokens_[at] == one) return {{at + 1, {-1}}};
      return {};
    };
  }
  Part word(int32_t role) const {
    return [this, role](size_t at) -> Readings {
      if (at >= tokens_.size() || tokens_[at] < 5) return {};
      const int32_t kind = (tokens_[at] - 5) % 4;
      const bool noun = kind == 0 || kind == 1 || kind == 3, adjective = kind != 0,
                 verb = kind == 0 || kind == 2 || kind == 3;
      const bool may = role == kAdjective                    ? adjective
                       : role == kSubject || role == kObject ? noun
                                                             : verb;
      if (!may && !any_) return {};
      return {{at + 1, {role}}};
    };
  }
  Part phrase(int32_t noun) const {
    return [this, noun](size_t at) {
      Readings result, so_far = token({3, 4})(at);
      while (!so_far.empty()) {
        append(result, then(so_far, word(noun)));
        so_far = then(so_far, word(kAdjective));
      }
      return result;
    };
  }
  Part phrase_with_clause(int32_t noun) const {
    return [this, noun](size_t at) {
      Readings result = phrase(noun)(at);
      const Readings that = then(result, token({2}));
      append(result, then(then(that, phrase(kSubject)), word(kRelativeVerb)));
      const Readings verb = then(that, word(kRelativeVerb));
      append(result, verb);
      append(result, then(verb, phrase(kObject)));
      return result;
    };
  }

  const Words& tokens_;
  bool any_;
};

// The labels of all sentences; empty, and a failure, where one of them has not one reading.
Words solved(const Words& tokens, bool any) {
  Words labels;
  while (labels.size() < tokens.size()) {
    const Readings readings = Parser(tokens, any).sentence(labels.size());
    if (readings.size() != 1) {
      ADD_FAILURE() << readings.size() << " readings at " << labels.size();
      return {};
    }
    labels.insert(labels.end(), readings[0].roles.begin(), readings[0].roles.end());
  }
  return labels;
}

TEST(Tagging, EverySentenceHasOneReadingAndItsRolesAreTheLabels) {
  for (const Given& given :
       {Given{}, Given{{"words", int64_t{4}}, {"length", int64_t{40}}},
        Given{{"adjectives", int64_t{0}}, {"length", int64_t{14}}, {"relative", 1.0}},
        Given{{"adjectives", int64_t{4}}, {"length", int64_t{100}}, {"relative", 0.8}}}) {
    const auto task = make(given);
    for (int64_t i = 0; i < 150; i++) {
      const Example e = task->example(2, Split::test, i);
      Words expected = solved(e.tokens, false);
      expected.resize(e.target.size(), kIgnoredLabel);
      ASSERT_EQ(e.target, expected) << task->params().str() << " example " << i;
      ASSERT_EQ(e.tokens.back(), 1);
    }
  }
}

// Which word it is does not matter: with every word drawn anew, of whatever class, all stays.
TEST(Tagging, TheSmallTokensDecide) {
  const auto task = make({});
  Rng random = rng(1, "tagging_test");
  for (int64_t i = 0; i < 100; i++) {
    const Example e = task->example(3, Split::train, i);
    Words changed = e.tokens;
    std::vector<int32_t> evidence;
    for (size_t at = 0; at < changed.size(); at++) {
      if (changed[at] < 5) evidence.push_back(static_cast<int32_t>(at));
      if (changed[at] >= 5) changed[at] = static_cast<int32_t>(random.between(5, 64));
    }
    ASSERT_EQ(e.evidence, evidence);
    Words labels = solved(changed, true);
    labels.resize(e.target.size(), kIgnoredLabel);
    ASSERT_EQ(labels, e.target);
  }
}

// No string of up to nine tokens has two readings, whatever its words may be.
TEST(Tagging, TheGrammarIsUnambiguous) {
  int64_t sentences = 0;
  for (int64_t size = 4; size <= 9; size++) {
    int64_t strings = 1;
    for (int64_t i = 1; i < size; i++) strings *= 3;
    for (int64_t code = 0; code < strings; code++) {
      Words tokens;
      for (int64_t i = 1, rest = code; i < size; i++, rest /= 3)
        tokens.push_back(std::vector<int32_t>{2, 3, 5}[static_cast<size_t>(rest % 3)]);
      tokens.push_back(1);
      const size_t readings = Parser(tokens, true).sentence(0).size();
      ASSERT_LE(readings, 1u);
      sentences += static_cast<int64_t>(readings);
    }
  }
  EXPECT_GT(sentences, 30);
}

TEST(Tagging, DistancesReachTheFartherEndOfTheSentence) {
  const auto task = make({});
  for (int64_t i = 0; i < 50; i++) {
    const Example e = task->example(4, Split::test, i);
    double sentences = 0, relative = 0;
    for (size_t begin = 0, end = 0; begin < e.tokens.size(); begin = end, sentences++) {
      bool that = false;
      do that |= e.tokens[end] == 2;
      while (e.tokens[end++] != 1);
      relative += that;
      for (size_t at = begin; at < end; at++) {
        const auto farther = static_cast<int32_t>(std::max(at - begin, end - 1 - at));
        ASSERT_EQ(e.distances[at], e.tokens[at] < 5 ? -1 : farther);
      }
    }
    ASSERT_EQ(e.slices.at("sentences"), sentences);
    ASSERT_DOUBLE_EQ(e.slices.at("relative"), relative / sentences);
  }
}

// Each choice of the grammar and of the words, from the first sentences: within five deviations.
TEST(Tagging, ChoicesFollowTheDatasheet) {
  const auto task = make({{"relative", 0.3}});
  constexpr int kCount = 4000;
  double clause = 0, adjectives[3] = {}, the = 0;
  std::map<int32_t, double> nouns;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(8, Split::train, i);
    the += e.tokens[0] == 4;
    size_t at = 1;
    while (e.target[at] == kAdjective) at++;
    adjectives[at - 1]++;
    nouns[e.tokens[at]]++;
    clause += e.tokens[at + 1] == 2;
  }
  const auto near = [](double count, double share, const char* what) {
    EXPECT_NEAR(count, kCount * share, 5 * std::sqrt(kCount * share * (1 - share))) << what;
  };
  near(clause, 0.3, "clause");
  near(the, 0.5, "the");
  for (const double count : adjectives) near(count, 1.0 / 3, "adjectives");
  EXPECT_EQ(nouns.size(), 45u);  // of 60 words, those that are not adjective or verb only
  for (const auto& [token, count] : nouns) near(count, 1.0 / 45, "noun");
}

TEST(Tagging, TheWordAloneDoesNotTell) {
  const auto task = make({});
  EXPECT_DOUBLE_EQ(task->chance(), 0.2);
  EXPECT_FALSE(task->shape().causal);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, 2000, 1000);
  EXPECT_LT(score_of(shortcuts, "token there"), 0.5);
  EXPECT_LT(score_of(shortcuts, "five words around"), 0.9);
  EXPECT_GT(score_of(shortcuts, "five words around"), 0.8);
  EXPECT_LT(score_of(shortcuts, "window of 16 (best)"), 0.92);
}

TEST(Tagging, BadParametersAreClearErrors) {
  EXPECT_TRUE(says(fault_of([&] {
                     make({{"length", int64_t{21}}});
                   }),
                   "may have 22 words, more than length=21"));
  EXPECT_NO_THROW(make({{"length", int64_t{22}}}));
}

}  // namespace
}  // namespace attn::tagging_test
