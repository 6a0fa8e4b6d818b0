// copy: a separator, a word, a separator, the same word (0w0w). The labels are the symbols of the
// second word. Kitaev et al. 2020 (Reformer), arXiv:2001.04451, section 2.1; Katharopoulos et al.
// 2020, arXiv:2006.16236, section 4.1. O(length) per example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/recall_task.h"
#include "tasks/shortcuts/remaining.h"

namespace attn::tasks {
namespace {

class Copy final : public recall::RecallTask {
 public:
  explicit Copy(const Params& p)
      : RecallTask(p, p.integer("symbols") + 2, p.integer("symbols") + 1),
        symbols_(p.integer("symbols")) {
    // Half open in Katharopoulos et al.: n in [length/4, (length - 1)/2).
    longest_ = p.flag("varied") ? (length() - 1) / 2 - 1 : length() / 2 - 1;
    shortest_ = p.flag("varied") ? length() / 4 : longest_;
    recall::check_inputs("copy", symbols_, shortest_, "symbols or length");
  }

 private:
  Example do_example(Rng& random) const override {
    const int64_t n = random.between(shortest_, longest_);
    std::vector<int32_t> word;
    for (int64_t i = 0; i < n; i++)
      word.push_back(static_cast<int32_t>(random.between(1, symbols_)));
    Example e;
    for (int copies = 0; copies < 2; copies++) {
      e.tokens.push_back(separator());
      e.tokens.insert(e.tokens.end(), word.begin(), word.end());
    }
    clear_labels(e);
    for (size_t i = 0; i < word.size(); i++) {
      const size_t from = 1 + i, at = word.size() + 1 + i;  // the token before the one to be named
      set_label(e, at, from);
      e.evidence.push_back(static_cast<int32_t>(from));
    }
    e.evidence.push_back(static_cast<int32_t>(n + 1));
    e.slices = {{"word", static_cast<double>(n)}};
    return e;
  }

  int32_t separator() const { return static_cast<int32_t>(symbols_ + 1); }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    return {{"most frequent symbol left", remaining_score(test)}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (const int32_t token : e.tokens)
      text += token == separator() ? "| " : fmt::format("{} ", token);
    return text +
           fmt::format("\nscored: the {} symbols behind the second |\n", e.tokens.size() / 2 - 1);
  }

  int64_t symbols_, shortest_ = 0, longest_ = 0;
};

}  // namespace

TaskInfo copy() {
  return {
      .name = "copy",
      .summary = "repeat a word of random symbols, each told by the tokens before it",
      .source =
          "arXiv:2001.04451 (Reformer), section 2.1; arXiv:2006.16236 (Transformers are RNNs), "
          "section 4.1",
      .datasheet =
          "Separator, word, separator, the same word: a word of n symbols, each drawn uniformly\n"
          "from 1..symbols; the separator is token symbols+1. n is length/2 - 1, or, where\n"
          "varied, drawn uniformly from length/4 to (length-1)/2 - 1 (rounded down, ends\n"
          "included); the 2n + 2 tokens are then followed by padding.\n"
          "Label: at position n+1+i, where the second separator (i = 0) or symbol i of the\n"
          "second copy stands, the next symbol, which position 1+i holds; nothing else is\n"
          "scored. Causal.\n"
          "Evidence: the first copy and the second separator. The tokens of the second copy\n"
          "decide nothing, but show where one is.\n"
          "Distance of every label: n. Slices: word, which is n.",
      .params = {{"symbols", 10, "different symbols; separator and padding are not among them", 2,
                  1e6},
                 {"length", 128, "both copies with their separators, at most", 4, 1e6},
                 {"varied", false, "draw the length of each word, rather than the longest for all"},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"reformer",
                   "Reformer's duplication: 127 symbols, words of 511",
                   {{"symbols", 127}, {"length", 1024}, {"varied", false}}},
                  {"rnn",
                   "Transformers are RNNs: 10 symbols, words of 32 to 62",
                   {{"symbols", 10}, {"length", 128}, {"varied", true}}}},
      .make = make_task<Copy>};
}

}  // namespace attn::tasks
