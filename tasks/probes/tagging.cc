// tagging: predict the role of each word in its sentence. The sentences come from a small grammar,
// and every word can be of two or three classes. After the parts of speech of "I saw a saw" and the
// relative clauses of Chomsky 1957, Syntactic Structures. O(length) per example.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/shortcuts/fitted.h"

namespace attn::tasks {
namespace {

enum Word : int32_t { kStop = 1, kThatWord, kA, kThe, kFirstWord };
enum Role : int32_t { kAdjective, kSubject, kObject, kVerb, kRelativeVerb, kRoles };
constexpr const char* kRoleNames[] = {"adj", "subj", "obj", "verb", "rel-verb"};

// Word w is of the classes of w modulo 4: noun or verb, adjective or noun, adjective or verb, all.
bool may_be(int64_t word, Role role) {
  const int64_t kind = word % 4;
  if (role == kAdjective) return kind != 0;
  return role == kSubject || role == kObject ? kind != 2 : kind != 1;
}

struct Sentence {
  std::vector<int32_t> tokens, roles;
  bool relative = false;
};

class Tagging final : public Task {
 public:
  explicit Tagging(const Params& p)
      : Task(p),
        length_(p.integer("length")),
        words_(p.integer("words")),
        adjectives_(p.integer("adjectives")),
        relative_(p.number("relative")) {
    const int64_t phrase = 2 + adjectives_;            // determiner, adjectives, noun
    const int64_t longest = 2 * (2 * phrase + 2) + 2;  // two with clauses, verb, stop
    ATTN_CHECK(longest <= length_,
               "tagging: a sentence with adjectives={} may have {} words, more than length={}",
               adjectives_, longest, length_);
  }

 private:
  void add(Rng& random, Role role, Sentence& s) const {
    int64_t word = 0;
    do word = random.between(0, words_ - 1);
    while (!may_be(word, role));
    s.tokens.push_back(static_cast<int32_t>(kFirstWord + word));
    s.roles.push_back(role);
  }
  static void add(int32_t token, Sentence& s) {
    s.tokens.push_back(token);
    s.roles.push_back(kIgnoredLabel);
  }

  void add_phrase(Rng& random, Role noun, Sentence& s) const {
    add(random.coin() ? kA : kThe, s);
    for (int64_t n = random.between(0, adjectives_); n > 0; n--) add(random, kAdjective, s);
    add(random, noun, s);
  }

  void add_noun(Rng& random, Role noun, Sentence& s) const {
    add_phrase(random, noun, s);
    if (!(random.uniform() < relative_)) return;
    s.relative = true;
    add(kThatWord, s);
    if (random.coin()) {  // that the man saw
      add_phrase(random, kSubject, s);
      add(random, kRelativeVerb, s);
      return;
    }
    add(random, kRelativeVerb, s);  // that saw (the man)
    if (random.coin()) add_phrase(random, kObject, s);
  }

  Sentence sentence(Rng& random) const {
    Sentence s;
    add_noun(random, kSubject, s);
    add(random, kVerb, s);
    if (random.coin()) add_noun(random, kObject, s);
    add(kStop, s);
    return s;
  }

  Example do_example(Rng& random) const override {
    Example e;
    double sentences = 0, relative = 0;
    for (;; sentences++) {
      const Sentence s = sentence(random);
      const int64_t begin = std::ssize(e.tokens), end = begin + std::ssize(s.tokens);
      if (end > length_) break;
      relative += s.relative;
      for (int64_t i = begin; i < end; i++) {
        const auto at = static_cast<size_t>(i - begin);
        const bool scored = s.roles[at] != kIgnoredLabel;
        if (!scored) e.evidence.push_back(static_cast<int32_t>(i));
        e.distances.push_back(scored ? static_cast<int32_t>(std::max(i - begin, end - 1 - i)) : -1);
      }
      e.tokens.insert(e.tokens.end(), s.tokens.begin(), s.tokens.end());
      e.target.insert(e.target.end(), s.roles.begin(), s.roles.end());
    }
    e.target.resize(static_cast<size_t>(length_), kIgnoredLabel);
    e.distances.resize(e.target.size(), -1);
    e.slices = {{"sentences", sentences}, {"relative", relative / sentences}};
    return e;
  }

  TaskShape do_shape() const override {
    return {.length = length_, .vocab = kFirstWord + words_, .classes = kRoles, .per_token = true};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>& train,
                                     const std::vector<Example>& test) const override;
  std::string do_draw(const Example& e) const override;

  int64_t length_, words_, adjectives_;
  double relative_;
};

// A tagger of five words: what kinds of words stand at the two places before and after, and what
// the word there may be.
std::vector<Shortcut> Tagging::do_shortcuts(const std::vector<Example>& train,
                                            const std::vector<Example>& test) const {
  const auto five = [](const Example& e, size_t i) {
    int64_t key = (e.tokens[i] - kFirstWord) % 4;
    for (const int64_t offset : {-2, -1, 1, 2}) {
      const int64_t at = static_cast<int64_t>(i) + offset;
      const bool inside = at >= 0 && at < std::ssize(e.tokens);
      const int32_t token = inside ? e.tokens[static_cast<size_t>(at)] : int32_t{kStop};
      key = key * 4 + (token >= kFirstWord ? 0 : std::min<int64_t>(token, kA));  // 'the' as 'a'
    }
    return key;
  };
  return {{"five words around", lookup_score(train, test, five)}};
}

std::string Tagging::do_draw(const Example& e) const {
  std::string text;
  for (size_t i = 0; i < e.tokens.size(); i++) {
    const int32_t token = e.tokens[i];
    if (token == kStop)
      text += ".\n";
    else if (token < kFirstWord)
      text += token == kThatWord ? "that " : token == kA ? "a " : "the ";
    else
      text += fmt::format("w{}/{} ", token - kFirstWord, kRoleNames[e.target[i]]);
  }
  return text;
}

}  // namespace

TaskInfo tagging() {
  return {
      .name = "tagging",
      .summary = "each word's role in its sentence, where the words alone do not tell it",
      .source = "a grammar of our own after Chomsky 1957, Syntactic Structures, chapter 4",
      .datasheet =
          "Tokens: 1 the full stop, 2 'that', 3 'a', 4 'the', 5 + w the word w of 0..words-1. A\n"
          "word may be of the classes of w modulo 4: 0 noun, verb; 1 adjective, noun; 2 "
          "adjective,\n"
          "verb; 3 all of them. Grammar, with P(adjectives) uniform in 0..`adjectives`, "
          "P(relative)\n"
          "as given, and a half for every other choice:\n"
          "  sentence -> noun-phrase verb [noun-phrase] .\n"
          "  noun-phrase -> phrase [that phrase verb | that verb [phrase]]\n"
          "  phrase -> (a | the) adjective* noun\n"
          "Words are uniform among those that may be of the class. Sentences follow one another;\n"
          "the first one that has no room in `length` ends the sequence.\n"
          "Label: of every word w 0 adjective, 1 subject, 2 object, 3 verb of the sentence, 4 verb "
          "of\n"
          "a relative clause. A noun with a clause has its role in the sentence; within a clause, "
          "the\n"
          "phrase before its verb is a subject, the one after it an object. The other tokens are "
          "not\n"
          "scored. The grammar is unambiguous even if every word were of all classes.\n"
          "Evidence: the tokens 1 to 4 of all sentences. With its place among those of its "
          "sentence\n"
          "they determine each word's role; which word it is only hints at it.\n"
          "Distance of a label: to the farther end of its sentence.\n"
          "Slices: sentences (their number), relative (share of them with 'that').",
      .params = {{"length", 64, "most tokens", 14, 1e6},
                 {"words", 60, "of the open classes", 4, 1e6},
                 {"adjectives", 2, "most adjectives before a noun", 0, 100},
                 {"relative", 0.4, "probability of a clause behind a noun", 0.0, 1.0},
                 {"train_examples", 10000, "training set, repeated over epochs"}},
      .presets = {{"long", "256 tokens", {{"length", 256}}}},
      .make = make_task<Tagging>};
}

}  // namespace attn::tasks
