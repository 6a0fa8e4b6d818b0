// majority: are there more ones than zeros? Attention can compute the answer by averaging. A
// circuit of Arora et al. 2023 (Zoology); theory in Merrill et al. 2022, arXiv:2106.16213.
// O(length) per example.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/api/task.h"

namespace attn::tasks {
namespace {

constexpr int32_t kZero = 1, kOne = 2;  // the tokens of the bits

class Majority final : public Task {
 public:
  explicit Majority(const Params& p) : Task(p), length_(p.integer("length")) {
    const int64_t wanted = p.integer("min_length");
    longest_ = odd(length_) ? length_ : length_ - 1;
    shortest_ = wanted == 0 ? longest_ : odd(wanted) ? wanted : wanted + 1;
    ATTN_CHECK(
        kFewestBits <= shortest_ && shortest_ <= longest_,
        "majority: no odd number from min_length={} to length={}, or it is below {}: too few "
        "different inputs",
        wanted, length_, kFewestBits);
  }

 private:
  static constexpr int64_t kFewestBits = 13;  // a thousand of 2^12 inputs belong to the test split

  static bool odd(int64_t n) { return n % 2 != 0; }

  Example do_example(Rng& random) const override {
    const int64_t n = shortest_ + 2 * random.between(0, (longest_ - shortest_) / 2);
    Example e;
    int64_t ones = 0;
    for (int64_t i = 0; i < n; i++) {
      const bool bit = random.coin();
      ones += bit;
      e.tokens.push_back(bit ? kOne : kZero);
      e.evidence.push_back(static_cast<int32_t>(i));
    }
    e.target = {2 * ones > n};
    e.slices = {
        {"length", static_cast<double>(n)},
        {"margin", static_cast<double>(std::max(ones, n - ones) - std::min(ones, n - ones))}};
    return e;
  }

  TaskShape do_shape() const override { return {.length = length_, .vocab = 3, .classes = 2}; }

  // The ladder's bag of tokens knows the answer; nothing is left to add.
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }

  std::string do_draw(const Example& e) const override {
    std::string text;
    for (const int32_t token : e.tokens) text += token == kOne ? '1' : '0';
    return text + fmt::format("\nmore {}s, by {:.0f}\n", e.target[0], e.slices.at("margin"));
  }

  int64_t length_, longest_ = 0, shortest_ = 0;
};

}  // namespace

TaskInfo majority() {
  return {
      .name = "majority",
      .summary = "are there more ones than zeros? what averaging can do",
      .source = "the circuits of arXiv:2312.04927's code (Zoology); theory: arXiv:2106.16213",
      .datasheet =
          "Tokens: 1 for a zero and 2 for a one, n of them, each with equal odds on its own. n\n"
          "is odd, so that there is no tie: the largest odd number up to length, or, with\n"
          "min_length, drawn uniformly from the odd numbers between the two, ends included; the\n"
          "rest is padding.\n"
          "Label: 1 when ones are more than zeros, else 0. A bag of tokens suffices.\n"
          "Evidence: all n positions.\n"
          "Slices: length (n), margin (how many more there are of the commoner bit).",
      .control = "a bag of tokens",
      .params = {{"length", 127, "bits at most; of an even number one stays unused", 13, 1e6},
                 {"min_length", 0, "bits at least; 0: always the most", 0, 1e6},
                 {"train_examples", 100000, "training set, repeated over epochs"}},
      .make = make_task<Majority>};
}

}  // namespace attn::tasks
