// translate against a recursive translator that reads the datasheet, its grammar against the counts
// that the datasheet promises, and its sums over sentences against enumeration.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tasks/sequences/sentences.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::translate_test {
namespace {

using Given = std::map<std::string, ParamValue>;

std::unique_ptr<Task> make(const Given& given = {}) { return find_task("translate").build(given); }

// A top-down parser that translates on the way. It knows kinds of words by their ranges.
class Translator {
 public:
  Translator(const Params& p, const std::vector<int32_t>& tokens)
      : genders_(p.integer("genders")), tokens_(tokens) {
    adjectives_ = 4 + p.integer("prepositions");
    verbs_ = adjectives_ + p.integer("adjectives");
    nouns_ = verbs_ + p.integer("verbs");
  }

  std::vector<int32_t> sentence() {
    int64_t ending = 0, unused = 0;
    std::vector<int32_t> output = phrase(ending);
    subject_nouns = nouns;
    verb_at = at_;
    const int32_t verb = next();
    const std::vector<int32_t> object = phrase(unused);
    output.insert(output.end(), object.begin(), object.end());
    add(output, verb, ending);
    if (at_ != tokens_.size()) throw_error("more than a sentence");
    return output;
  }

  std::vector<int64_t> nouns;  // the endings of all nouns passed so far
  std::vector<int64_t> subject_nouns;
  size_t verb_at = 0;

 private:
  int32_t next() { return tokens_.at(at_++); }

  void add(std::vector<int32_t>& output, int32_t token, int64_t ending) const {
    output.push_back(static_cast<int32_t>(2 * genders_ + token - 3));
    output.push_back(static_cast<int32_t>(ending));
  }

  // `ending`: of its first noun.
  std::vector<int32_t> phrase(int64_t& ending) {
    const bool plural = next() == 2;
    std::vector<int32_t> adjectives;
    int32_t word = next();
    for (; word < verbs_; word = next()) {
      if (word < adjectives_) throw_error("no adjective");
      adjectives.insert(adjectives.begin(), word);
    }
    if (word < nouns_) throw_error("no noun");
    ending = 2 * ((word - nouns_) % genders_) + plural;
    nouns.push_back(ending);
    std::vector<int32_t> output;
    if (at_ < tokens_.size() && tokens_[at_] >= 3 && tokens_[at_] < adjectives_) {
      const int32_t link = next(), verb = link == 3 ? next() : 0;
      int64_t inner = 0;
      output = phrase(inner);
      if (link == 3) add(output, verb, ending);
      output.push_back(static_cast<int32_t>(2 * genders_ + link - 3));
    }
    add(output, word, ending);
    for (const int32_t adjective : adjectives) add(output, adjective, ending);
    return output;
  }

  int64_t genders_, adjectives_, verbs_, nouns_;
  const std::vector<int32_t>& tokens_;
  size_t at_ = 0;
};

const std::vector<Given>& settings() {
  static const std::vector<Given> all = {
      {},
      {{"preset", std::string("small")}},
      {{"length", 60}, {"attach", 0.8}, {"most_adjectives", 4}, {"genders", 1}},
      {{"nouns", 100}, {"verbs", 30}, {"prepositions", 1}, {"genders", 7}, {"attach", 0.2}}};
  return all;
}

TEST(Translate, TheOutputIsThatOfARecursiveTranslator) {
  for (const Given& given : settings()) {
    const auto task = make(given);
    for (int64_t i = 0; i < 300; i++) {
      const Example e = task->example(3, i % 2 ? Split::train : Split::test, i);
      Translator translator(task->params(), e.tokens);
      ASSERT_EQ(e.target, translator.sentence()) << task->draw(e);
      ASSERT_EQ(e.evidence.size(), e.tokens.size());
      const std::vector<int64_t>& subject = translator.subject_nouns;
      ASSERT_EQ(e.slices.at("nouns"), static_cast<double>(translator.nouns.size()));
      ASSERT_EQ(e.slices.at("attractors"),
                static_cast<double>(std::ssize(subject) -
                                    std::count(subject.begin(), subject.end(), subject[0])));
      const auto noun = std::find_if(e.tokens.begin(), e.tokens.end(), [&](int32_t token) {
        return token >= task->shape().vocab - task->params().integer("nouns");
      });
      ASSERT_EQ(e.distances[0],
                static_cast<int32_t>(translator.verb_at) - (noun - e.tokens.begin()));
    }
  }
}

// Where all sentences fit, the kinds follow the grammar's probabilities.
TEST(Translate, TheGrammarHasItsProbabilities) {
  const auto task = make({{"length", 400}, {"attach", 0.4}});
  constexpr int kCount = 5000;
  std::map<int32_t, double> count;
  double nouns = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(2, Split::train, i);
    for (const int32_t token : e.tokens) count[token]++;
    nouns += e.slices.at("nouns");
  }
  // Tokens: 1, 2, "that", 4 prepositions, 8 adjectives, 12 verbs, 24 nouns.
  EXPECT_EQ(count.rbegin()->first, 3 + 4 + 8 + 12 + 24);
  const double hangs = nouns - 2 * kCount;  // each phrase ends in one noun on which nothing hangs
  const auto total = [&](int32_t from, int32_t to) {
    double sum = 0;
    for (int32_t token = from; token < to; token++) sum += count[token];
    return sum;
  };
  const auto near = [](double got, double n, double p) {
    EXPECT_NEAR(got, n * p, 5 * std::sqrt(n * p * (1 - p)));
  };
  near(hangs, nouns, 0.4);
  near(count[3], hangs, 0.5);
  EXPECT_EQ(total(4, 8), hangs - count[3]);
  EXPECT_EQ(total(16, 28), kCount + count[3]);
  near(count[2], nouns, 0.5);
  EXPECT_NEAR(total(8, 16), nouns, 5 * std::sqrt(nouns * 2 / 3));  // 0 to 2: mean 1, variance 2/3
  for (int32_t token = 4; token < 8; token++) near(count[token], total(4, 8), 1.0 / 4);
  for (int32_t token = 8; token < 16; token++) near(count[token], total(8, 16), 1.0 / 8);
  for (int32_t token = 16; token < 28; token++) near(count[token], total(16, 28), 1.0 / 12);
  for (int32_t token = 28; token < 52; token++) near(count[token], nouns, 1.0 / 24);
}

// Forms of phrases by recursion: kinds of tokens, not words. `visit`: size, adjectives, clauses,
// prepositions.
using Visit = std::function<void(int64_t, int64_t, int64_t, int64_t)>;
void phrases(int64_t room, int64_t most, const Visit& visit) {
  for (int64_t a = 0; a <= most && 2 + a <= room; a++) {
    visit(2 + a, a, 0, 0);
    for (const int64_t link : {1, 2})
      phrases(room - 2 - a - link, most, [&](int64_t size, int64_t adj, int64_t c, int64_t p) {
        visit(size + 2 + a + link, adj + a, c + (link == 2), p + (link == 1));
      });
  }
}

TEST(Translate, SumsAndTheLongestOutputAreThoseOfAnEnumeration) {
  const double attach = 0.3, guess = 1.0 / (6 + 1 + 4 + 8 + 12 + 24 + 1);
  for (int64_t most = 0; most <= 2; most++)
    for (int64_t length = 5; length <= 14; length++) {
      double kept = 0, right = 0;
      int64_t longest = 0;
      const auto chance = [&](int64_t adjectives, int64_t clauses, int64_t prepositions,
                              int64_t nouns) {
        const double p = std::pow(1.0 / static_cast<double>(most + 1), nouns) *
                         std::pow(attach / 2, clauses + prepositions) * std::pow(1 - attach, 2);
        // noun ending, adjective ending, verb ending that, preposition; verb ending, the end
        const int64_t size = 2 * nouns + 2 * adjectives + 3 * clauses + prepositions + 2;
        kept += p;
        right += p * std::pow(guess, size + 1);
        longest = std::max(longest, size);
      };
      phrases(length - 3, most, [&](int64_t size, int64_t a, int64_t c, int64_t p) {
        phrases(length - 1 - size, most, [&](int64_t, int64_t a2, int64_t c2, int64_t p2) {
          chance(a + a2, c + c2, p + p2, 2 + c + p + c2 + p2);
        });
      });
      const double head = 1.0 / static_cast<double>(most + 1);
      EXPECT_NEAR(
          sequences::sentence_sum(length, most, {head, 1, 1 - attach, attach / 2, attach / 2}),
          kept, 1e-12);
      EXPECT_EQ(sequences::longest_translation(length, most), longest);
      if (length < 9) continue;  // too few sentences
      const auto task = make({{"length", length}, {"most_adjectives", most}, {"attach", attach}});
      EXPECT_NEAR(task->chance() / (right / kept), 1, 1e-9);
      EXPECT_EQ(task->shape().outputs, longest);
    }
}

TEST(Translate, EveryWordCounts) {
  const auto task = make();
  const Params& p = task->params();
  const int64_t kinds[] = {1, 3, 4, 8, 16, 28, 52};  // where each kind of word begins
  Rng random = rng(1, "translate_test");
  for (int64_t i = 0; i < 100; i++) {
    const Example e = task->example(6, Split::test, i);
    for (size_t at = 0; at < e.tokens.size(); at++) {
      const auto* const kind = std::upper_bound(kinds, kinds + 7, e.tokens[at]);
      if (kind[0] - kind[-1] == 1) continue;  // "that"
      std::vector<int32_t> changed = e.tokens;
      while (changed[at] == e.tokens[at])
        changed[at] = static_cast<int32_t>(random.between(kind[-1], kind[0] - 1));
      EXPECT_NE(Translator(p, changed).sentence(), e.target);
    }
  }
}

TEST(Translate, WordByWordIsNeverRight) {
  EXPECT_EQ(score_of(make()->shortcuts(1, 200, 500), "word by word"), 0);
}

TEST(Translate, BadParametersAreClearErrors) {
  const auto message = [](const Given& given) -> std::string {
    return fault_of([&] { make(given); });
  };
  EXPECT_TRUE(says(message({{"length", 5}}), "length=5 and these words make only 27648 different"));
  EXPECT_TRUE(says(message({{"length", 12}, {"most_adjectives", 100}, {"attach", 0.9}}),
                   "is no longer than length=12"));
}

}  // namespace
}  // namespace attn::translate_test
