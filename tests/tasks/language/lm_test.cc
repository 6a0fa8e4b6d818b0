// lm: labels against the next bytes, the grammar's text against a reader of its sentences, and the
// shortcuts of a text whose bits are known.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <regex>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tasks/data/bytes.h"
#include "tests/said.h"
#include "tests/tasks/data/folder.h"
#include "tests/tasks/score_of.h"

namespace attn::lm_test {
namespace {

using Given = std::map<std::string, ParamValue>;

TEST(Lm, LabelsAreTheNextBytes) {
  const auto task = find_task("lm").build({{"preset", std::string("small")}});
  for (int64_t i = 0; i < 50; i++) {
    const Example e = task->example(1, Split::validation, i);
    ASSERT_EQ(std::ssize(e.tokens), 128);
    for (size_t at = 0; at + 1 < e.tokens.size(); at++) {
      ASSERT_EQ(e.target[at], e.tokens[at + 1] - 1);
      ASSERT_EQ(e.distances[at], static_cast<int32_t>(at));
    }
  }
}

// The label and the four bytes before it stand earlier in what was read, by a search of the text.
void expect_repeats(const Example& e, const std::string& text, int64_t& ones) {
  const std::vector<int32_t>& repeats = e.label_slices.at("repeats");
  ASSERT_EQ(repeats.size(), e.target.size());
  for (size_t at = 0; at < repeats.size(); at++) {
    if (e.target[at] == kIgnoredLabel) {
      ASSERT_EQ(repeats[at], -1);
      continue;
    }
    const std::string span = at < 3 ? "" : text.substr(at - 3, 5);
    const bool is_there = !span.empty() && text.substr(0, at + 1).find(span) != std::string::npos;
    ASSERT_EQ(repeats[at], is_there ? 1 : 0) << at << " of " << text;
    ones += is_there;
  }
}

std::string whole_text(const Example& e) {
  return data::text_of(e.tokens) + static_cast<char>(e.target[e.tokens.size() - 1]);
}

TEST(Lm, ALabelRepeatsAnEarlierSpanOfFourBytesAndIt) {
  const auto task = find_task("lm").build({{"preset", std::string("small")}});
  int64_t ones = 0;
  for (int64_t i = 0; i < 50; i++) {
    const Example e = task->example(1, Split::test, i);
    expect_repeats(e, whole_text(e), ones);
  }
  EXPECT_GT(ones, 50 * 128 / 20);
  EXPECT_LT(ones, 50 * 128 / 2);
  const Folder folder;
  Rng random = rng(5, "two letters");
  std::string text;
  for (int i = 0; i < 20'000; i++) text += random.below(4) == 0 ? 'b' : 'a';
  folder.write("text", text);
  const auto read = find_task("lm").build({{"data", folder.path() + "/text"},
                                           {"length", int64_t{128}},
                                           {"train_examples", int64_t{20}}});
  ones = 0;
  int64_t labels = 0;
  for (int64_t i = 0; i < read->train_examples(); i++) {
    const Example e = read->example(1, Split::train, i);
    expect_repeats(e, whole_text(e), ones);
    labels += std::ssize(e.tokens);
  }
  EXPECT_GT(ones, labels / 2) << "of 32 runs of five letters, some of which are of one letter";
  EXPECT_LT(ones, labels);
}

struct Known {
  std::string trade, place, pronoun;
};

class LmReader {
 public:
  // Whether the sentence is one of the grammar and contradicts nothing read before.
  bool agrees(const std::string& sentence) {
    static const std::regex present("([a-z]+) is a ([a-z]+) from ([a-z]+)\\."),
        sold(
            "the ([a-z]+) ([a-z]+) sold (a [a-z]+ [a-z]+|two [a-z]+ [a-z]+s) to ([a-z]+) of "
            "([a-z]+)\\."),
        saw("([a-z]+) of ([a-z]+) says that (he|she) saw the ([a-z]+) ([a-z]+)\\."),
        made(
            "the ([a-z]+) that ([a-z]+) the ([a-z]+) made for ([a-z]+) of ([a-z]+) (is|are) "
            "[a-z]+\\.");
    std::smatch found;
    if (std::regex_match(sentence, found, present))
      return people_.insert({found[1], {found[2], found[3], ""}}).second;
    if (std::regex_match(sentence, found, sold))
      return trade(found[2]) == found[1] && place(found[4]) == found[5];
    if (std::regex_match(sentence, found, saw)) {
      std::string& pronoun = people_[found[1]].pronoun;
      const bool same = pronoun.empty() || pronoun == found[3];
      pronoun = found[3];
      return same && place(found[1]) == found[2] && trade(found[5]) == found[4];
    }
    if (!std::regex_match(sentence, found, made)) return false;
    return trade(found[2]) == found[3] && place(found[4]) == found[5] &&
           (found[1].str().back() == 's') == (found[6] == "are");
  }
  int64_t people() const { return std::ssize(people_); }

 private:
  std::string trade(const std::string& name) { return people_[name].trade; }
  std::string place(const std::string& name) { return people_[name].place; }
  std::map<std::string, Known> people_;
};

TEST(Lm, EverySentenceOfTheGrammarAgreesWithThoseBefore) {
  const auto task = find_task("lm").build({{"preset", std::string("long")}});
  int64_t sentences = 0, people = 0;
  for (int64_t i = 0; i < 60; i++) {
    const Example e = task->example(2, Split::test, i);
    const std::string text = data::text_of(e.tokens);
    LmReader reader;
    size_t begin = 0;
    for (size_t end = 0; (end = text.find(". ", begin)) != std::string::npos; begin = end + 2) {
      const std::string sentence = text.substr(begin, end + 1 - begin);
      ASSERT_TRUE(reader.agrees(sentence)) << sentence;
      sentences++;
    }
    EXPECT_LE(std::abs(static_cast<double>(reader.people()) - e.slices.at("people")), 1)
        << "the last sentence is cut";
    people += reader.people();
  }
  EXPECT_GT(sentences, 60 * 30);
  EXPECT_GT(people, 60 * 7) << "about every fourth sentence presents somebody";
}

// Bytes that are uniform among 16: 4 bits each, whatever is known; each byte twice: half of that.
TEST(Lm, ShortcutsOfAFileWithKnownBits) {
  const Folder folder;
  Rng random = rng(3, "bytes");
  std::string uniform, twice;
  for (int i = 0; i < 400'000; i++) uniform += static_cast<char>('a' + random.below(16));
  for (int i = 0; i < 200'000; i++)
    twice += std::string(2, static_cast<char>('a' + random.below(16)));
  folder.write("uniform", uniform);
  folder.write("twice", twice);
  const auto scored = [&](const char* file) {
    return find_task("lm")
        .build({{"data", folder.path() + "/" + file}, {"length", int64_t{256}}})
        ->shortcuts(1, 2000, 100);
  };
  const std::vector<Shortcut> flat = scored("uniform"), pairs = scored("twice");
  EXPECT_NEAR(score_of(flat, "label frequencies"), 4, 0.01);
  EXPECT_NEAR(score_of(flat, "n-gram of 2"), 4, 0.02);
  EXPECT_GT(score_of(flat, "n-gram of 1 in context"), 4.1) << "it has to learn them first";
  EXPECT_NEAR(score_of(pairs, "label frequencies"), 4, 0.01);
  // Behind one byte: it comes again with 1/2 + 1/32, any other one with 1/32.
  EXPECT_NEAR(score_of(pairs, "n-gram of 2"), -17.0 / 32 * std::log2(17.0 / 32) + 15 * 5.0 / 32,
              0.03);
}

TEST(Lm, WhatIsReadIsOfTheTaskAndStandsInItsDatasheet) {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 3000; i++) text += fmt::format("line {} of {}\n", i, i * i);
  folder.write("text", text);
  const auto task = find_task("lm").build({{"data", folder.path() + "/text"}});
  EXPECT_EQ(task->shape().length, 512) << "the defaults, not those of standard";
  const Example e = task->example(0, Split::train, 0);
  EXPECT_TRUE(says(text, data::text_of(e.tokens)));
  EXPECT_EQ(task->draw(e), data::text_of(e.tokens) + "\n");
  EXPECT_TRUE(says(fault_of([&] {
                     find_task("lm").build({{"data", folder.path() + "/none"}});
                   }),
                   "none"));
}

}  // namespace
}  // namespace attn::lm_test
