// text: classify documents of bytes that give opinions on two subjects. Words anywhere in the
// document name the subject whose opinions count. After the byte-level text task of Long Range
// Arena (arXiv:2011.04006, 2.2.2), which has no generator. O(length) per example.
#include <algorithm>
#include <array>
#include <map>
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

// Every list of opinions has a letter of its own that filler words seldom hold: counting letters is
// a fair guess at counting words, and where learning starts.
using Words = std::array<std::string_view, 8>;
constexpr Words kOpinions[2][2] = {  // [subject][good]
    {{"weak", "bleak", "murky", "blank", "shaky", "stark", "creaky", "lacking"},
     {"vivid", "brave", "lively", "vast", "clever", "vital", "moving", "velvet"}},
    {{"limp", "damp", "cheap", "tepid", "sloppy", "drippy", "pompous", "insipid"},
     {"zesty", "dazzling", "razor", "blazing", "amazing", "ablaze", "bronze", "azure"}}};
constexpr std::string_view kNot = "not";
constexpr int64_t kLongestMention = 8, kLongestOpinion = 13;  // "not dazzling", with a blank behind

// Roles of phrases: 0 and 1 name a subject, 2 + 2·subject + good are opinions ("not" included).
int32_t opinion_role(size_t subject, bool good) {
  return 2 + 2 * static_cast<int32_t>(subject) + (good ? 1 : 0);
}
bool concerns(int32_t role, size_t subject) {
  return static_cast<size_t>(role < 2 ? role : (role - 2) / 2) == subject;
}

// What the shortcuts look at, read from the bytes.
struct Reading {
  int64_t subject = 0;    // that is named
  int64_t net[2] = {};    // good minus bad opinions, by subject
  int64_t net_words = 0;  // good minus bad words of both subjects, whether behind a "not" or not
  int64_t last = 0;       // +1 or -1: the last opinion
};

std::map<std::string, int32_t, std::less<>> roles_of_words() {
  std::map<std::string, int32_t, std::less<>> roles;
  for (size_t subject = 0; subject < 2; subject++) {
    roles.emplace(kSubjects[subject], static_cast<int32_t>(subject));
    for (const bool good : {false, true})
      for (const std::string_view word : kOpinions[subject][good])
        roles.emplace(word, opinion_role(subject, good));
  }
  return roles;
}

Reading read(const Example& e) {
  static const std::map<std::string, int32_t, std::less<>> roles = roles_of_words();
  const std::string text = data::text_of(e.tokens) + ' ';
  Reading reading;
  std::string_view before;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find(' ', begin);
    const std::string_view word(text.data() + begin, end - begin);
    if (const auto found = roles.find(word); found != roles.end()) {
      const int32_t role = found->second;
      if (role < 2) {
        reading.subject = role;
      } else {
        const int64_t of_word = role % 2 ? 1 : -1;
        reading.last = before == kNot ? -of_word : of_word;
        reading.net[(role - 2) / 2] += reading.last;
        reading.net_words += of_word;
      }
    }
    before = word;
    begin = end + 1;
  }
  return reading;
}

int64_t sign(int64_t x) { return (x > 0) - (x < 0); }

class Text final : public Task {
 public:
  explicit Text(const Params& p)
      : Task(p),
        length_(p.integer("length")),
        mentions_(p.integer("mentions") > 0 ? p.integer("mentions") : (length_ + 127) / 128),
        opinions_((p.integer("opinions") > 0 ? p.integer("opinions") : length_ / 32) | 1),
        range_(p.number("range")),
        against_(p.number("against")),
        negation_(p.number("negation")) {
    if (const std::string& folder = p.text("data"); !folder.empty())
      files_ = data::imdb(folder, length_);
    const int64_t most = mentions_ * kLongestMention + 2 * opinions_ * kLongestOpinion + 1;
    ATTN_CHECK(most <= length_,
               "text: mentions={} and opinions={} of each subject may take {} bytes, more than "
               "length={}",
               mentions_, opinions_, most, length_);
    for (size_t subject = 0; subject < 2; subject++)
      for (const bool good : {false, true})
        for (size_t i = 0; i < 8; i++)
          negated_[subject][good][i] = fmt::format("{} {}", kNot, kOpinions[subject][good][i]);
  }

 private:
  Example do_example(Rng& random) const override {
    const size_t subject = random.below(2);
    const bool good = random.coin(), opposed = random.uniform() < range_;
    std::vector<Phrase> phrases(static_cast<size_t>(mentions_),
                                {kSubjects[subject], static_cast<int32_t>(subject)});
    const int64_t net = append_opinions(subject, good, random, phrases);
    append_opinions(1 - subject, good != opposed, random, phrases);
    Document document = compose(phrases, length_, random);
    Example e;
    e.tokens = std::move(document.tokens);
    e.target = {good ? 1 : 0};
    append_positions(document, 0, e.evidence,
                     [&](int32_t role) { return concerns(role, subject); });
    e.slices = {{"margin", static_cast<double>(net) / static_cast<double>(opinions_)},
                {"opposed", opposed ? 1.0 : 0.0}};
    return e;
  }

  // Opinions on `subject` whose majority is `good`; by how many is returned.
  int64_t append_opinions(size_t subject, bool good, Rng& random,
                          std::vector<Phrase>& phrases) const {
    const auto most = static_cast<int64_t>(against_ * static_cast<double>(opinions_));
    const int64_t against = random.between(0, std::min(most, (opinions_ - 1) / 2));
    for (int64_t i = 0; i < opinions_; i++) {
      const bool says_good = good != (i < against);
      const bool turned = random.uniform() < negation_;
      const bool good_word = says_good != turned;
      const size_t word = random.below(8);
      phrases.push_back({turned ? std::string_view(negated_[subject][good_word][word])
                                : kOpinions[subject][good_word][word],
                         opinion_role(subject, says_good)});
    }
    return opinions_ - 2 * against;
  }

  const Source* do_source() const override { return files_.get(); }

  TaskShape do_shape() const override {
    return {.length = length_, .vocab = kByteVocab, .classes = 2};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override {
    if (source()) return {};  // what follows knows the generated words
    const auto score = [&](const auto& feature) {
      return lookup_score(train, test, [&](const Example& e, size_t) { return feature(read(e)); });
    };
    return {{"subject named", score([](const Reading& r) { return r.subject; })},
            {"good words", score([](const Reading& r) { return sign(r.net_words); })},
            {"good opinions", score([](const Reading& r) { return sign(r.net[0] + r.net[1]); })},
            {"opinions of one subject", score([](const Reading& r) { return sign(r.net[0]); })},
            {"last opinion", score([](const Reading& r) { return r.last; })}};
  }

  std::string do_draw(const Example& e) const override {
    return fmt::format("{}\n= {}\n", data::text_of(e.tokens), e.target[0] == 1 ? "good" : "bad");
  }

  int64_t length_, mentions_, opinions_;
  double range_, against_, negation_;
  std::unique_ptr<Source> files_;
  std::string negated_[2][2][8];  // [subject][good word]: "not" and the word
};

}  // namespace

TaskInfo text() {
  return {
      .name = "text",
      .summary = "classify a document, byte by byte, by what it says of the subject it names",
      .source = "after the byte-level text task of arXiv:2011.04006 (Long Range Arena), 2.2.2",
      .datasheet =
          "Words separated by blanks, exactly `length` bytes. A document names one of two\n"
          "subjects, film or quartet, `mentions` times, and holds `opinions` on each of the two:\n"
          "on film, bad weak bleak murky blank shaky stark creaky lacking, good vivid brave "
          "lively\n"
          "vast clever vital moving velvet; on quartet, bad limp damp cheap tepid sloppy drippy\n"
          "pompous insipid, good zesty dazzling razor blazing amazing ablaze bronze azure. Behind\n"
          "the word not an opinion is its opposite, which `negation` of them are. All of these\n"
          "stand in a random order among filler words.\n"
          "Label: 1 when the good opinions on the named subject outnumber the bad ones, else 0;\n"
          "their number is odd. At most `against` of the opinions on a subject go against the\n"
          "majority. The other subject's majority is the opposite with probability `range`: at 0\n"
          "counting opinions is enough (a bag of words, local), at 1 a count without the subject\n"
          "says nothing. Tokens: byte + 1.\n"
          "Evidence: the bytes of the mentions and of the opinions on the named subject, with\n"
          "their not. Slices: margin (majority less minority, as a share of the opinions on the\n"
          "subject), opposed (1 when the other subject's majority is the opposite).\n"
          "With `data`, reviews that were read: no evidence, no slices.",
      .params = {{"length", 4000, "bytes of a document", 64, 1e6},
                 {"range", 0.7, "how often the other subject is judged the opposite", 0, 1},
                 {"opinions", 0, "on each subject, rounded up to odd; 0: one in 32 bytes", 0, 1e6},
                 {"mentions", 0, "of the subject that counts; 0: one in 128 bytes", 0, 1e6},
                 {"against", 0.4, "largest share of opinions against the majority", 0, 0.5},
                 {"negation", 0.15, "share of opinions said by not and the opposite word", 0, 1},
                 {"data", std::vector<std::string>{""},
                  "folder of IMDb's reviews; empty: generated"},
                 {"train_examples", 25000, "training set, repeated over epochs; LRA's size"}},
      .presets = {{"lra", "Long Range Arena's length", {{"length", int64_t{4000}}}},
                  {"standard", "a quarter of it", {{"length", int64_t{1024}}}},
                  {"small", "a sixteenth", {{"length", int64_t{256}}}}},
      .make = make_task<Text>,
      .released = &data::imdb_format()};
}

}  // namespace attn::tasks
