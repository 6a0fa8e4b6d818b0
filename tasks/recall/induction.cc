// induction: a trigger token occurs once among random symbols and again at the end. The label is
// the symbol after its first occurrence. Fu et al. 2022 (H3), arXiv:2212.14052, section 3.1; after
// Olsson et al. 2022, arXiv:2209.11895. O(length) per example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/guesses.h"
#include "tasks/recall/recall_task.h"

namespace attn::tasks {
namespace {

class Induction final : public recall::RecallTask {
 public:
  explicit Induction(const Params& p)
      : RecallTask(p, p.integer("symbols") + 2, p.integer("symbols") + 1),
        lengths_(p, "induction", kShortest),
        symbols_(p.integer("symbols")) {
    recall::check_inputs("induction", symbols_, lengths_.least() - 2,
                         "symbols, length or min_length");
  }

 private:
  static constexpr int64_t kShortest = 4;  // both triggers, and two symbols after the first

  Example do_example(Rng& random) const override {
    const int64_t length = lengths_.draw(random);
    Example e;
    for (int64_t i = 0; i < length; i++)
      e.tokens.push_back(static_cast<int32_t>(random.between(1, symbols_)));
    const auto first = static_cast<size_t>(random.between(0, length - 3)),
               last = e.tokens.size() - 1;
    e.tokens[first] = e.tokens[last] = trigger();
    clear_labels(e);
    set_label(e, last, first + 1);
    e.evidence = {static_cast<int32_t>(first), static_cast<int32_t>(first + 1)};
    e.slices = {{"gap", static_cast<double>(e.distances[last])}};
    return e;
  }

  int32_t trigger() const { return static_cast<int32_t>(symbols_ + 1); }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    return {{"most frequent symbol", recall::commonest_token_score(test, 1, symbols_)}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (const int32_t token : e.tokens)
      text += token == trigger() ? "* " : fmt::format("{} ", token);
    return text + fmt::format("= {}\n", e.target[e.tokens.size() - 1]);
  }

  recall::LengthRange lengths_;
  int64_t symbols_;
};

}  // namespace

TaskInfo induction() {
  return {
      .name = "induction",
      .summary = "name the symbol that followed the earlier occurrence of the last token",
      .source = "arXiv:2212.14052 (H3), section 3.1; after arXiv:2209.11895 (induction heads)",
      .datasheet =
          "Every position holds a symbol drawn uniformly from 1..symbols, but for the trigger\n"
          "(token symbols+1), which stands at a position drawn uniformly from 0..length-3 and\n"
          "again at the last one, length-1. With min_length an example's length is drawn\n"
          "uniformly from min_length..length, and takes the place of length here.\n"
          "Label: at the last position, the symbol that stands behind the first trigger; nothing\n"
          "else is scored. Causal.\n"
          "Evidence: the first trigger and the symbol behind it; all other symbols are free.\n"
          "Distance: from the last position back to that symbol, 1..length-2 and uniform.\n"
          "Slices: gap, which is that distance.",
      .params = {{"symbols", 18, "different symbols; trigger and padding are not among them", 2,
                  1e6},
                 {"length", 32, "sequence length, both triggers included", 4, 1e6},
                 {"min_length", 0,
                  "shortest sequence; 0: as length. Short ones teach to compare symbols", 0, 1e6},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .presets = {{"h3",
                   "H3's: a vocabulary of 20 with two special tokens, length 30",
                   {{"symbols", 18}, {"length", 30}, {"train_examples", 5000}}},
                  {"mamba",
                   "Mamba's: a vocabulary of 16 with the trigger, trained at length 256",
                   {{"symbols", 15}, {"length", 256}}}},
      .make = make_task<Induction>};
}

}  // namespace attn::tasks
