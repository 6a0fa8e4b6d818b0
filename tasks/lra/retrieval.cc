// retrieval: do two documents, each encoded separately, have the same topic? The topic of a
// document is the main topic of the subject that it names. After the byte-level retrieval task of
// Long Range Arena (arXiv:2011.04006, 2.2.3), which has no generator. O(length) per example.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "core/base/check.h"
#include "tasks/api/task.h"
#include "tasks/data/bytes.h"
#include "tasks/data/released.h"
#include "tasks/data/sources.h"
#include "tasks/lra/documents/compose.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

// A topical word is a letter, a vowel, the letter again, a vowel. The letter gives subject and
// topic; filler words hold it too.
constexpr size_t kMostTopics = 4;
constexpr std::array<std::string_view, 2> kLetters = {"wckz", "ydvp"};
constexpr std::string_view kVowels = "aeiou";
constexpr size_t kWords = 25;                       // of a topic
constexpr int64_t kWordCost = 5, kMentionCost = 8;  // at most, with a blank behind

// Roles of phrases: 0 and 1 name a subject, 2 + kMostTopics·subject + topic are topical words.
int32_t word_role(size_t subject, size_t topic) {
  return 2 + static_cast<int32_t>(kMostTopics * subject + topic);
}

int64_t share(double part, int64_t whole) {
  return static_cast<int64_t>(part * static_cast<double>(whole));
}

class Retrieval final : public Task {
 public:
  explicit Retrieval(const Params& p)
      : Task(p),
        length_(p.integer("length")),
        topics_(static_cast<size_t>(p.integer("topics"))),
        mentions_(p.integer("mentions") > 0 ? p.integer("mentions") : (length_ + 63) / 64),
        words_(share(p.number("density"), length_ / (2 * kWordCost))),
        main_(share(p.number("main"), words_)),
        range_(p.number("range")) {
    if (const std::string& folder = p.text("data"); !folder.empty())
      files_ = data::aan_tsv(folder, length_);
    const int64_t most = mentions_ * kMentionCost + 2 * words_ * kWordCost + 1;
    ATTN_CHECK(most <= length_,
               "retrieval: mentions={} and density={} may take {} bytes, more than length={}",
               mentions_, p.number("density"), most, length_);
    const auto others = static_cast<int64_t>(topics_) - 1;
    ATTN_CHECK(main_ >= 1 && words_ - main_ <= others * (main_ - 1),
               "retrieval: main={} leaves {} of a subject's {} words to its main topic, too few to "
               "outnumber {} others",
               p.number("main"), main_, words_, others);
    for (size_t subject = 0; subject < 2; subject++)
      for (size_t topic = 0; topic < topics_; topic++)
        for (size_t i = 0; i < kWords; i++) {
          const char letter = kLetters[subject][topic];
          lexicon_[subject][topic][i] = {letter, kVowels[i / 5], letter, kVowels[i % 5]};
        }
  }

 private:
  Example do_example(Rng& random) const override {
    const bool same = random.coin();
    const size_t topic = random.below(topics_);
    Example e;
    const int64_t first = draw_document(topic, random, 0, e.tokens, e.evidence);
    const int64_t second =
        draw_document(same ? topic : another(topic, random), random, length_, e.second, e.evidence);
    e.target = {same ? 1 : 0};
    e.slices = {
        {"lead", static_cast<double>(std::min(first, second)) / static_cast<double>(words_)}};
    return e;
  }

  size_t another(size_t topic, Rng& random) const {
    return (topic + 1 + random.below(topics_ - 1)) % topics_;
  }

  // By how many words the topic leads. `begin` is the position of the document's first byte.
  int64_t draw_document(size_t topic, Rng& random, int64_t begin, std::vector<int32_t>& tokens,
                        std::vector<int32_t>& evidence) const {
    const size_t subject = random.below(2);
    std::vector<Phrase> phrases(static_cast<size_t>(mentions_),
                                {kSubjects[subject], static_cast<int32_t>(subject)});
    const int64_t lead = append_words(subject, topic, random, phrases);
    const bool differs = random.uniform() < range_;
    append_words(1 - subject, differs ? another(topic, random) : topic, random, phrases);
    Document document = compose(phrases, length_, random);
    tokens = std::move(document.tokens);
    append_positions(document, begin, evidence, [&](int32_t role) {
      return role == static_cast<int32_t>(subject) || role == word_role(subject, topic);
    });
    return lead;
  }

  // Words of `subject`, most of them on `topic`; by how many it leads is returned.
  int64_t append_words(size_t subject, size_t topic, Rng& random,
                       std::vector<Phrase>& phrases) const {
    std::array<int64_t, kMostTopics> counts{};
    counts[topic] = main_;
    int64_t next = 0;
    for (int64_t left = words_ - main_; left > 0;) {
      const size_t other = another(topic, random);
      if (counts[other] == main_ - 1) continue;
      next = std::max(next, ++counts[other]);
      left--;
    }
    for (size_t t = 0; t < topics_; t++)
      for (int64_t i = 0; i < counts[t]; i++)
        phrases.push_back({lexicon_[subject][t][random.below(kWords)], word_role(subject, t)});
    return main_ - next;
  }

  const Source* do_source() const override { return files_.get(); }

  TaskShape do_shape() const override {
    return {.length = length_, .vocab = kByteVocab, .classes = 2, .pairs = true};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    if (source()) return {};  // what follows knows the generated words
    const auto score = [&](const auto& feature) {
      return lookup_score(train, test, [&](const Example& e, size_t) {
        return feature(counted(e.tokens), counted(e.second));
      });
    };
    return {
        {"letters in common", lookup_score(train, test,
                                           [](const Example& e, size_t) {
                                             return letter_distance(e.tokens, e.second);
                                           })},
        {"same subject",
         score([](const Counted& a, const Counted& b) { return a.subject == b.subject ? 1 : 0; })},
        {"most frequent words", score([](const Counted& a, const Counted& b) {
           return a.topic_of_most == b.topic_of_most ? 1 : 0;
         })},
        {"topics of one subject",
         score([](const Counted& a, const Counted& b) { return a.main[0] == b.main[0] ? 1 : 0; })}};
  }

  // How many bytes of one document have no counterpart in the other.
  static int64_t letter_distance(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    std::array<int64_t, kByteVocab> counts{};
    for (const int32_t token : a) counts[static_cast<size_t>(token)]++;
    for (const int32_t token : b) counts[static_cast<size_t>(token)]--;
    int64_t sum = 0;
    for (const int64_t count : counts) sum += std::abs(count);
    return sum / 2;
  }

  struct Counted {
    size_t subject = 0;            // that is named
    std::array<size_t, 2> main{};  // topic with the most words, by subject
    size_t topic_of_most = 0;      // topic with the most words of both subjects
  };

  // Topical words are the only ones of the form xVxV.
  Counted counted(const std::vector<int32_t>& tokens) const {
    const std::string text = data::text_of(tokens);
    std::array<std::array<int64_t, kMostTopics>, 2> words{};
    for (size_t i = 0; i + 3 < text.size(); i++) {
      if (text[i] != text[i + 2] || kVowels.find(text[i + 1]) == std::string::npos) continue;
      if (kVowels.find(text[i + 3]) == std::string::npos) continue;
      for (size_t subject = 0; subject < 2; subject++) {
        const size_t topic = kLetters[subject].find(text[i]);
        if (topic < topics_) words[subject][topic]++;
      }
    }
    Counted result;
    result.subject = text.find(kSubjects[1]) == std::string::npos ? 0 : 1;
    std::array<int64_t, kMostTopics> both{};
    const auto most = [](const auto& counts) {
      return static_cast<size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
    };
    for (size_t subject = 0; subject < 2; subject++) {
      result.main[subject] = most(words[subject]);
      for (size_t topic = 0; topic < topics_; topic++) both[topic] += words[subject][topic];
    }
    result.topic_of_most = most(both);
    return result;
  }

  std::string do_draw(const Example& e) const override {
    return fmt::format("{}\n\n{}\n= {}\n", data::text_of(e.tokens), data::text_of(e.second),
                       e.target[0] == 1 ? "same topic" : "different topics");
  }

  int64_t length_;
  std::unique_ptr<Source> files_;
  size_t topics_;
  int64_t mentions_, words_, main_;  // words of each subject, and those of its main topic
  double range_;
  // [subject][topic]
  std::array<std::array<std::array<std::string, kWords>, kMostTopics>, 2> lexicon_;
};

}  // namespace

TaskInfo retrieval() {
  return {
      .name = "retrieval",
      .summary = "do two documents, each compressed to one vector, have the same topic?",
      .source = "after the byte-level retrieval task of arXiv:2011.04006 (Long Range Arena), 2.2.3",
      .datasheet =
          "Two documents of words separated by blanks, exactly `length` bytes each. A document\n"
          "names one of two subjects, film or quartet, `mentions` times, and holds topical words\n"
          "of both, a part `density` of its bytes, in a random order among filler words. A "
          "topical\n"
          "word is a letter, a vowel, the same letter and a vowel. Its letter gives subject and\n"
          "topic: w c k z are topics 1 to 4 of film, y d v p those of quartet, of which the first\n"
          "`topics` are used. A part `main` of a subject's words belongs to its main topic, the\n"
          "others to other topics, each with fewer words.\n"
          "A document's topic is the number of the main topic of the subject it names; the other\n"
          "subject's main topic has another number with probability `range`: at 0 counting words\n"
          "is enough, at (topics-1)/topics the other subject says nothing, at 1 it misleads.\n"
          "Label: 1 when both documents have the same topic, else 0. Tokens: byte + 1.\n"
          "Evidence: the mentions and the words of each document's topic; the second document's\n"
          "positions start at `length`. Slices: lead (of a document's topic over the next one, as\n"
          "a share of the subject's words, in the document where it is smaller).\n"
          "With `data`, pairs that were read: no evidence, no slices.",
      .params = {{"length", 4000, "bytes of each document", 64, 1e6},
                 {"topics", 4, "topics of each subject", 2, kMostTopics},
                 {"range", 0.5, "how often the other subject has another main topic", 0, 1},
                 {"mentions", 0, "of the subject that counts; 0: one in 64 bytes", 0, 1e6},
                 {"density", 0.6, "share of topical words, by bytes", 0.1, 0.9},
                 {"main", 0.7, "share of the main topic among a subject's words", 0.1, 1},
                 {"data", std::vector<std::string>{""},
                  "folder of the AAN pairs; empty: generated"},
                 {"train_examples", 147086, "training set, repeated over epochs; LRA's size"}},
      .presets = {{"lra", "Long Range Arena's length", {{"length", int64_t{4000}}}},
                  {"standard", "a quarter of it", {{"length", int64_t{1024}}}},
                  {"small", "a sixteenth", {{"length", int64_t{256}}}}},
      .make = make_task<Retrieval>,
      .released = &data::aan_tsv_format()};
}

}  // namespace attn::tasks
