// translate: translate sentences of an artificial language into another with a different word order
// and with agreement. After the grammars of Grefenstette et al. 2015, arXiv:1506.02516,
// section 4.2, where verbs move to the end and nouns have genders. O(length) per sentence drawn,
// O(length²) once.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/sequences/exact_match.h"
#include "tasks/sequences/sentences.h"

namespace attn::tasks {
namespace {

using sequences::Head, sequences::NounPhrase, sequences::Weights;
using sequences::kPlural, sequences::kSingular, sequences::kThat;
using sequences::longest_translation, sequences::sentence_sum;

class Translate final : public Task {
 public:
  explicit Translate(const Params& p)
      : Task(p),
        length_(p.integer("length")),
        most_adjectives_(p.integer("most_adjectives")),
        endings_(2 * p.integer("genders")),
        attach_(p.number("attach")) {
    int32_t next = kThat + 1;
    for (const auto& [kind, name] :
         {std::pair{&prepositions_, "prepositions"}, std::pair{&adjectives_, "adjectives"},
          std::pair{&verbs_, "verbs"}, std::pair{&nouns_, "nouns"}}) {
      *kind = {next, static_cast<int32_t>(p.integer(name))};
      next += kind->count;
    }
    vocab_ = next;
    check_size();
  }

 private:
  struct Words {
    int32_t first = 0, count = 0;
    int32_t draw(Rng& random) const {
      return first + static_cast<int32_t>(random.below(static_cast<uint64_t>(count)));
    }
    bool has(int32_t token) const { return token >= first && token < first + count; }
  };

  void check_size() const {
    const double inputs =
        verbs_.count * sentence_sum(length_, most_adjectives_,
                                    {2.0 * nouns_.count, 1.0 * adjectives_.count, 1,
                                     1.0 * prepositions_.count, 1.0 * verbs_.count});
    ATTN_CHECK(inputs >= recall::kFewestInputs,
               "translate: length={} and these words make only {:.0f} different sentences; allow "
               "longer ones or more words",
               length_, inputs);
    const double kept = sentence_sum(length_, most_adjectives_, probabilities());
    ATTN_CHECK(kept >= 1e-3,
               "translate: one sentence in {:.0f} is no longer than length={}; lower attach={} or "
               "most_adjectives={}",
               1 / kept, length_, attach_, most_adjectives_);
  }

  Weights probabilities() const {
    const double head = 1 / static_cast<double>(most_adjectives_ + 1);
    return {head, 1, 1 - attach_, attach_ / 2, attach_ / 2};
  }

  NounPhrase draw_phrase(Rng& random) const {
    NounPhrase phrase;
    do {
      Head& head = phrase.emplace_back();
      head.determiner = random.coin() ? kPlural : kSingular;
      head.adjectives.resize(random.below(static_cast<uint64_t>(most_adjectives_ + 1)));
      for (int32_t& adjective : head.adjectives) adjective = adjectives_.draw(random);
      head.noun = nouns_.draw(random);
      if (random.uniform() >= attach_) break;
      const bool clause = random.coin();
      head.link = clause ? kThat : prepositions_.draw(random);
      if (clause) head.verb = verbs_.draw(random);
    } while (size_of(phrase) <= length_);  // what is longer is refused anyway
    return phrase;
  }

  int32_t ending(const Head& head) const {
    return 2 * ((head.noun - nouns_.first) % static_cast<int32_t>(endings_ / 2)) +
           (head.determiner == kPlural);
  }
  // The endings come first in the target language, then every word from "that" on.
  int32_t word(int32_t token) const { return static_cast<int32_t>(endings_) + token - kThat; }

  void append_inflected(int32_t token, const Head& head, std::vector<int32_t>& output) const {
    output.push_back(word(token));
    output.push_back(ending(head));
  }

  // The last head first; each link after what it links, each adjective after its noun.
  void append_output(const NounPhrase& phrase, std::vector<int32_t>& output) const {
    for (auto head = phrase.rbegin(); head != phrase.rend(); ++head) {
      if (head->verb != 0) append_inflected(head->verb, *head, output);
      if (head->link != 0) output.push_back(word(head->link));
      append_inflected(head->noun, *head, output);
      for (auto a = head->adjectives.rbegin(); a != head->adjectives.rend(); ++a)
        append_inflected(*a, *head, output);
    }
  }

  Example do_example(Rng& random) const override {
    NounPhrase subject, object;
    do {
      subject = draw_phrase(random);
      object = draw_phrase(random);
    } while (size_of(subject) + 1 + size_of(object) > length_);
    const int32_t verb = verbs_.draw(random);
    Example e;
    append(subject, e.tokens);
    const int64_t verb_at = std::ssize(e.tokens);
    e.tokens.push_back(verb);
    append(object, e.tokens);
    append_output(subject, e.target);
    append_output(object, e.target);
    append_inflected(verb, subject[0], e.target);
    e.evidence = first_positions(e.tokens.size());
    e.distances = {static_cast<int32_t>(verb_at - 1 - std::ssize(subject[0].adjectives))};
    int64_t attractors = 0;
    for (const Head& head : subject) attractors += ending(head) != ending(subject[0]);
    e.slices = {{"length", static_cast<double>(e.tokens.size())},
                {"nouns", static_cast<double>(subject.size() + object.size())},
                {"attractors", static_cast<double>(attractors)}};
    return e;
  }

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = vocab_,
            .classes = word(static_cast<int32_t>(vocab_)),
            .outputs = longest_translation(length_, most_adjectives_)};
  }

  // A guess for each place and for the end, among all output tokens and the end; over all
  // sentences, as they are drawn.
  double do_chance() const override {
    const double guess = 1 / (1.0 + word(static_cast<int32_t>(vocab_)));
    const Weights p = probabilities();
    const Weights guessed = {p.head * guess * guess, guess * guess, p.last, p.preposition * guess,
                             p.clause * guess * guess * guess};
    return guess * guess * guess * sentence_sum(length_, most_adjectives_, guessed) /
           sentence_sum(length_, most_adjectives_, p);
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    return {{"word by word", exact_match(test, [&](const Example& e) { return in_order(e); })}};
  }

  // Every word where it stands, with the ending of the noun that it precedes, or, of a verb, of the
  // noun before it.
  std::vector<int32_t> in_order(const Example& e) const {
    std::vector<int32_t> output;
    Head head;
    for (size_t i = 0; i < e.tokens.size(); i++) {
      const int32_t token = e.tokens[i];
      if (token < kThat) {
        head.determiner = token;
        const auto noun = std::find_if(e.tokens.begin() + static_cast<ptrdiff_t>(i), e.tokens.end(),
                                       [&](int32_t t) { return nouns_.has(t); });
        head.noun = *noun;
      } else if (token == kThat || prepositions_.has(token)) {
        output.push_back(word(token));
      } else {
        append_inflected(token, head, output);
      }
    }
    return output;
  }

  std::string text(int32_t token) const {
    if (token == kThat) return "that";
    for (const auto& [kind, letter] : {std::pair{&prepositions_, 'p'}, std::pair{&adjectives_, 'a'},
                                       std::pair{&verbs_, 'v'}, std::pair{&nouns_, 'n'}})
      if (kind->has(token)) return fmt::format("{}{}", letter, token - kind->first);
    return token == kSingular ? "the" : "all";
  }

  std::string do_draw(const Example& e) const override {
    std::string drawn = "source";
    for (const int32_t token : e.tokens) drawn += fmt::format(" {}", text(token));
    drawn += "\noutput";
    for (const int32_t token : e.target)
      drawn += token < endings_
                   ? fmt::format("-{}{}", token / 2, token % 2 ? "p" : "s")
                   : fmt::format(" {}", text(token - static_cast<int32_t>(endings_) + kThat));
    return drawn + "\n";
  }

  int64_t length_, most_adjectives_, endings_, vocab_ = 0;
  double attach_;
  Words prepositions_, adjectives_, verbs_, nouns_;
};

}  // namespace

TaskInfo translate() {
  return {
      .name = "translate",
      .summary = "translate sentences into a language with other word order and with agreement",
      .source = "after arXiv:1506.02516 (Learning to transduce with unbounded memory), section 4.2",
      .datasheet =
          "Source: SENTENCE = PHRASE verb PHRASE; PHRASE = determiner adjective* noun, then with\n"
          "probability attach a preposition and a PHRASE or \"that\", a verb and a PHRASE, either\n"
          "with probability 1/2. 0 to most_adjectives adjectives, a number drawn uniformly; every\n"
          "word is drawn uniformly from its kind. Longer sentences than length are drawn again.\n"
          "Tokens: 1 and 2 the singular and the plural determiner, 3 \"that\", then "
          "prepositions,\n"
          "adjectives, verbs and nouns. Noun k, from 0, has gender k modulo genders.\n"
          "Label: the output, both phrases and then the verb: translated(first PHRASE)\n"
          "translated(second PHRASE) verb ending. A translated PHRASE is, first, what hangs on "
          "its\n"
          "noun: the inner PHRASE translated, then the preposition, or else the verb, its ending\n"
          "and \"that\"; then noun ending and, from the last adjective to the first, adjective\n"
          "ending. Determiners are left out. An ending is 2·gender, and one more in the plural, "
          "of\n"
          "the noun that a word agrees with: a noun with itself, an adjective with the noun after\n"
          "it, a verb after \"that\" with the noun before \"that\", the sentence's verb with the\n"
          "sentence's first noun. Output tokens: the endings, then source token t as\n"
          "2·genders + t - 3.\n"
          "Score: exact match, the place of the end included.\n"
          "Evidence: every position. Distance: from the first noun to the sentence's verb.\n"
          "Slices: length (of the source), nouns, attractors (nouns between these two whose "
          "ending\n"
          "is not the first one's).",
      .metric = "exact_match",
      .params = {{"length", 32, "longest sentence", 5, 4096},
                 {"nouns", 24, "different nouns", 1, 1e5},
                 {"adjectives", 8, "different adjectives", 1, 1e5},
                 {"verbs", 12, "different verbs", 1, 1e5},
                 {"prepositions", 4, "different prepositions", 1, 1e5},
                 {"genders", 3, "of nouns", 1, 100},
                 {"most_adjectives", 2, "adjectives of one noun, at most", 0, 100},
                 {"attach", 0.5, "probability that something hangs on a noun", 0, 0.9},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"small",
                   "sentences of up to 16 words",
                   {{"length", 16}, {"most_adjectives", 1}, {"attach", 0.4}}},
                  {"standard", "sentences of up to 32 words", {{"length", 32}}}},
      .make = make_task<Translate>};
}

}  // namespace attn::tasks
