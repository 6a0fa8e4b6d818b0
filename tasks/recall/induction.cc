// induction: a trigger stands once among random symbols and again at the end; the label is the
// symbol that followed it. Fu et al. 2022 (H3), arXiv:2212.14052, section 3.1; after Olsson et al.
// 2022, arXiv:2209.11895. O(length) an example.
#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"
#include "tasks/recall/draws.h"
#include "tasks/recall/guesses.h"

namespace attn::tasks {
namespace {

class Induction final : public Task {
 public:
  explicit Induction(const Params& p)
      : Task(p), symbols_(p.integer("symbols")), length_(p.integer("length")) {
    const int64_t least = p.integer("min_length");
    least_ = least == 0 ? length_ : least;
    ATTN_CHECK(kShortest <= least_ && least_ <= length_,
               "induction: min_length={} is neither 0 nor from {} to length={}", least_, kShortest,
               length_);
    recall::check_inputs("induction", symbols_, least_ - 2, "symbols, length or min_length");
  }

 private:
  static constexpr int64_t kShortest = 4;  // both triggers, and two symbols after the first

  Example do_example(Rng& random) const override {
    const int64_t length = least_ < length_ ? random.between(least_, length_) : length_;
    Example e;
    for (int64_t i = 0; i < length; i++)
      e.tokens.push_back(static_cast<int32_t>(random.between(1, symbols_)));
    const auto first = static_cast<size_t>(random.between(0, length - 3)),
               last = e.tokens.size() - 1;
    e.tokens[first] = e.tokens[last] = trigger();
    e.target.assign(static_cast<size_t>(length_), kIgnoredLabel);
    e.target[last] = e.tokens[first + 1];
    e.distances.assign(static_cast<size_t>(length_), -1);
    e.distances[last] = static_cast<int32_t>(last - (first + 1));
    e.evidence = {static_cast<int32_t>(first), static_cast<int32_t>(first + 1)};
    e.slices = {{"gap", static_cast<double>(e.distances[last])}};
    return e;
  }

  int32_t trigger() const { return static_cast<int32_t>(symbols_ + 1); }

  TaskShape do_shape() const override {
    return {.length = length_,
            .vocab = symbols_ + 2,
            .classes = symbols_ + 1,
            .per_token = true,
            .causal = true};
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    const auto low = int32_t{1}, high = static_cast<int32_t>(symbols_);
    return {{"most frequent symbol", recall::rule_score(test, [&](const Example& e, size_t i) {
               return recall::commonest(e.tokens, i, low, high);
             })}};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (const int32_t token : e.tokens)
      text += token == trigger() ? "* " : fmt::format("{} ", token);
    return text + fmt::format("= {}\n", e.target[e.tokens.size() - 1]);
  }

  int64_t symbols_, length_, least_ = 0;
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
