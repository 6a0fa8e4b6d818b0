// phonebook: names of several letters with numbers of several digits; a question gives the first
// letters of a name, and the answer is its number. After the phone book of Jelassi et al. 2024,
// arXiv:2402.01032, section 4, with tokens in place of words and a part of the name in place of
// the whole. O(length·letters) per example.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/guesses.h"
#include "tasks/recall/recall_task.h"

namespace attn::tasks {
namespace {

class Phonebook final : public recall::RecallTask {
 public:
  explicit Phonebook(const Params& p)
      : RecallTask(p, p.integer("alphabet") + kDigits + 2, p.integer("alphabet") + kDigits + 1),
        alphabet_(p.integer("alphabet")),
        letters_(p.integer("letters")),
        prefix_(p.integer("prefix")),
        digits_(p.integer("digits")),
        questions_(p.integer("questions")) {
    ATTN_CHECK(prefix_ <= letters_, "phonebook: prefix={} is longer than a name, letters={}",
               prefix_, letters_);
    entries_ = (length() - questions_ * (1 + prefix_ + digits_)) / entry();
    ATTN_CHECK(entries_ >= 2 && entries_ >= questions_,
               "phonebook: length={} has room for {} entries beside questions={}; make it longer",
               length(), std::max<int64_t>(0, entries_), questions_);
    double names = 1;
    for (int64_t i = 0; i < prefix_; i++) names *= static_cast<double>(alphabet_);
    double inputs = 1;
    for (int64_t i = 0; i < entries_ && inputs < recall::kFewestInputs; i++)
      inputs *= (names - static_cast<double>(i)) * std::pow(10, static_cast<double>(digits_));
    ATTN_CHECK(inputs >= recall::kFewestInputs,
               "phonebook: {} entries of {} letters and {} digits make only {:.0f} different "
               "inputs; letters, digits or length must be larger",
               entries_, prefix_, digits_, inputs);
    ATTN_CHECK(static_cast<double>(entries_) <= names / 2,
               "phonebook: prefix={} of alphabet={} tell {:.0f} names apart; for {} entries at "
               "least {} are needed",
               prefix_, alphabet_, names, entries_, 2 * entries_);
  }

 private:
  static constexpr int64_t kDigits = 10;
  int64_t entry() const { return letters_ + digits_; }

  Example do_example(Rng& random) const override {
    Example e;
    clear_labels(e);
    std::set<std::vector<int32_t>> seen;
    for (int64_t i = 0; i < entries_; i++) {
      std::vector<int32_t> start;
      do {
        start = drawn(random, prefix_, 1, alphabet_);
      } while (!seen.insert(start).second);
      append(e, start);
      append(e, drawn(random, letters_ - prefix_, 1, alphabet_));
      append(e, drawn(random, digits_, alphabet_ + 1, alphabet_ + kDigits));
    }
    const std::vector<int32_t> asked = recall::distinct(random, entries_, questions_);
    double later = 0;
    for (const int32_t which : asked) {
      const size_t at = static_cast<size_t>(which) * static_cast<size_t>(entry());
      ask(e, at);
      later += static_cast<double>(entries_ - 1 - which);
    }
    e.evidence = first_positions(static_cast<size_t>(entries_ * entry()));
    e.slices = {{"mean_later", later / static_cast<double>(questions_)}};
    return e;
  }

  // The first letters of the entry at `at`, and its number, each digit of which is the label of
  // the token before it.
  void ask(Example& e, size_t at) const {
    e.tokens.push_back(question());
    for (size_t i = 0; i < static_cast<size_t>(prefix_); i++) e.tokens.push_back(e.tokens[at + i]);
    const size_t number = at + static_cast<size_t>(letters_);
    for (size_t i = 0; i < static_cast<size_t>(digits_); i++) {
      set_label(e, e.tokens.size() - 1, number + i);
      e.tokens.push_back(e.tokens[number + i]);
    }
  }

  static std::vector<int32_t> drawn(Rng& random, int64_t count, int64_t low, int64_t high) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < count; i++)
      tokens.push_back(static_cast<int32_t>(random.between(low, high)));
    return tokens;
  }
  static void append(Example& e, const std::vector<int32_t>& tokens) {
    e.tokens.insert(e.tokens.end(), tokens.begin(), tokens.end());
  }

  int32_t question() const { return static_cast<int32_t>(alphabet_ + kDigits + 1); }

  // Digits of the entries whose last `run` tokens before that digit, of those that a question
  // shows, are the ones before `position`: what is known without the rest of the prefix. The
  // question starts after `mark`.
  std::vector<int32_t> digits_after(const Example& e, size_t position, int64_t run) const {
    size_t mark = position;
    while (e.tokens[mark] != question()) mark--;
    const auto shown = static_cast<int64_t>(position - mark);  // tokens of the prefix and digits
    const auto place = [this](int64_t token) {                 // in an entry
      return token < prefix_ ? token : token - prefix_ + letters_;
    };
    std::vector<int32_t> digits;
    for (int64_t at = 0; at < entries_ * entry(); at += entry()) {
      bool fits = true;
      for (int64_t token = std::max<int64_t>(0, shown - run); token < shown; token++)
        fits = fits && e.tokens[static_cast<size_t>(at + place(token))] ==
                           e.tokens[mark + 1 + static_cast<size_t>(token)];
      if (fits) digits.push_back(e.tokens[static_cast<size_t>(at + place(shown))]);
    }
    return digits;
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    std::vector<Shortcut> all = {
        {"most frequent digit",
         recall::commonest_token_score(test, alphabet_ + 1, alphabet_ + kDigits)}};
    for (int64_t run = 1; run < prefix_; run++)
      all.push_back({run == 1 ? std::string("entries by the last token")
                              : fmt::format("entries by the last {} tokens", run),
                     recall::random_choice_score(test, [this, run](const Example& e, size_t i) {
                       return digits_after(e, i, run);
                     })});
    return all;
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (size_t i = 0; i < e.tokens.size(); i++) {
      const int32_t token = e.tokens[i];
      const bool starts = i < e.evidence.size() && i % static_cast<size_t>(entry()) == 0;
      if (token == question())
        text += "\n? ";
      else if (token > alphabet_)
        text += fmt::format("{}", token - alphabet_ - 1);
      else
        text += fmt::format("{}{}", starts && i > 0 ? " " : "", letter(token));
    }
    return text + "\n";
  }

  // a to z, then numbers in brackets.
  static std::string letter(int32_t token) {
    if (token <= 26) return std::string(1, static_cast<char>('a' + token - 1));
    return fmt::format("<{}>", token);
  }

  int64_t alphabet_, letters_, prefix_, digits_, questions_, entries_ = 0;
};

}  // namespace

TaskInfo phonebook() {
  return {
      .name = "phonebook",
      .summary = "look up a number of several digits by the first letters of a name",
      .source = "after arXiv:2402.01032, section 4 (phone book)",
      .datasheet =
          "An entry is `letters` letters (tokens 1..alphabet) and `digits` digits (the ten tokens\n"
          "behind these), each drawn uniformly, but for names whose first `prefix` letters "
          "another\n"
          "entry has, which are drawn again. Entries stand one behind another, as many as leave\n"
          "room for the questions. A question is a token of its own (alphabet+11), the first\n"
          "`prefix` letters of an entry, and its digits; entries are drawn uniformly without\n"
          "repetition.\n"
          "Label: each digit of a question, at the token before it: the model reads the digits\n"
          "before it. Nothing else is scored. Causal.\n"
          "Evidence: the positions of the entries.\n"
          "Distance of a label: from it back to the digit in the entry.\n"
          "Slices: mean_later, how many entries follow those that are asked for.\n"
          "A longer sequence has more entries; the rest of a division is left out. Few letters "
          "make\n"
          "many names start alike, so that all letters of a prefix are needed.",
      .params = {{"alphabet", 6, "different letters", 2, 1000},
                 {"letters", 4, "letters of a name", 1, 1000},
                 {"prefix", 3, "letters that a question gives", 1, 1000},
                 {"digits", 4, "digits of a number", 1, 1000},
                 {"questions", 4, "entries that are asked for", 1, 1e5},
                 {"length", 128, "sequence length, questions included", 8, 1e6},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets =
          {{"standard",
            "28 entries in 256 tokens, four of them asked for by three letters",
            {{"length", 256}}},
           {"small",
            "five entries in 30 tokens, two of them asked for by names of two letters",
            {{"letters", 2}, {"prefix", 2}, {"digits", 2}, {"questions", 2}, {"length", 30}}}},
      .make = make_task<Phonebook>};
}

}  // namespace attn::tasks
