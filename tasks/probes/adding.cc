// adding: predict the sum of two marked numbers of a sequence. Hochreiter and Schmidhuber 1997,
// Long Short-Term Memory, experiment 4, in the form of later benchmarks. O(length) per example.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"

namespace attn::tasks {
namespace {

class Adding final : public Task {
 public:
  explicit Adding(const Params& p)
      : Task(p), length_(p.integer("length")), halves_(p.text("markers") == "halves") {}

 private:
  Example do_example(Rng& random) const override {
    const auto [first, second] = marked(random);
    Example e;
    e.values.reserve(static_cast<size_t>(2 * length_));
    for (int64_t i = 0; i < length_; i++) {
      const double number = static_cast<double>(random.bits() >> 40) * 0x1.0p-24;  // exact in float
      e.values.push_back(static_cast<float>(number));
      e.values.push_back(i == first || i == second ? 1.0f : 0.0f);
    }
    e.wanted = {e.values[static_cast<size_t>(2 * first)] +
                e.values[static_cast<size_t>(2 * second)]};
    e.evidence = {static_cast<int32_t>(first), static_cast<int32_t>(second)};
    e.slices = {{"gap", static_cast<double>(second - first)}};
    return e;
  }

  std::pair<int64_t, int64_t> marked(Rng& random) const {
    const int64_t half = length_ / 2;
    if (halves_) {
      const int64_t first = random.between(0, half - 1);
      return {first, random.between(half, length_ - 1)};
    }
    const int64_t one = random.between(0, length_ - 1);
    int64_t other = random.between(0, length_ - 2);  // of those left
    if (other >= one) other++;
    return {std::min(one, other), std::max(one, other)};
  }

  TaskShape do_shape() const override {
    return {.length = length_, .classes = 1, .channels = 2, .real = true};
  }
  double do_chance() const override { return 1.0 / 6; }  // variance of two uniform numbers' sum

  // The bag of values in the ladder holds the sum of number times marker, which is the answer.
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (size_t i = 0; i < e.values.size(); i += 2)
      if (e.values[i + 1] > 0) text += fmt::format("@{} {:.4f}  ", i / 2, e.values[i]);
    return text + fmt::format("of {} numbers; sum {:.4f}\n", length_, e.wanted[0]);
  }

  int64_t length_;
  bool halves_;
};

}  // namespace

TaskInfo adding() {
  return {
      .name = "adding",
      .summary = "the sum of the two numbers, among many, that are marked",
      .source = "Hochreiter and Schmidhuber 1997, Neural Computation 9(8), experiment 4",
      .datasheet =
          "Every position holds two numbers: one uniform in [0, 1), a multiple of 2^-24, and a\n"
          "marker, 1 at two positions and 0 elsewhere. markers=halves draws one marked position\n"
          "uniformly from each half (the first one of length/2 positions), markers=anywhere two\n"
          "different ones from all.\n"
          "Label: none; the number to predict is the sum of the two marked numbers. Scored by\n"
          "the mean squared error; always answering 1, the mean, costs 1/6.\n"
          "Without attention: the sum over all positions of number times marker is the answer,\n"
          "so that a feed-forward layer and a mean suffice; see the shortcut 'bag of values'.\n"
          "Evidence: the two marked positions. Their numbers and all markers determine the sum.\n"
          "Distance: from the one to the other.\n"
          "Slices: gap (positions between the marked ones, plus 1).",
      .metric = "mean_squared_error",
      .control = "the sum over all positions of number times marker",
      .params = {{"length", 200, "numbers a sequence", 2, 1e6},
                 {"markers",
                  {"halves", "anywhere"},
                  "where the two are: one in each half, or any two positions"},
                 {"train_examples", 50000, "training set, repeated over epochs"}},
      .presets = {{"small", "40 numbers", {{"length", 40}}},
                  {"long", "1000 numbers, one marked in each half", {{"length", 1000}}}},
      .make = make_task<Adding>};
}

}  // namespace attn::tasks
