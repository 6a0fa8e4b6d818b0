// sort: the output is the numbers of the source in ascending order, with repetitions. Bucket sort
// of Deletang et al. 2023 (Neural networks and the Chomsky hierarchy), arXiv:2207.02098, table of
// tasks. O(length·log length) per example.
#include <algorithm>

#include "tasks/sequences/exact_match.h"
#include "tasks/sequences/symbol_task.h"

namespace attn::tasks {
namespace {

class Sort final : public sequences::SymbolTask {
 public:
  explicit Sort(const Params& params) : SymbolTask(params, "sort") {}

 private:
  std::vector<int32_t> answer(std::vector<int32_t> symbols) const override {
    std::sort(symbols.begin(), symbols.end());
    return symbols;
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    return {{"copy the source", exact_match(test, source)},
            {"evenly spread numbers",
             exact_match(test, [&](const Example& e) { return spread(std::ssize(e.tokens)); })}};
  }

  // Place i of n holds the number at the middle of its share: what a length alone suggests.
  std::vector<int32_t> spread(int64_t n) const {
    std::vector<int32_t> numbers;
    for (int64_t i = 0; i < n; i++)
      numbers.push_back(static_cast<int32_t>((2 * i + 1) * symbols() / (2 * n)));
    return numbers;
  }
};

}  // namespace

TaskInfo sort() {
  return {
      .name = "sort",
      .summary = "answer a sequence of numbers with the same numbers in ascending order",
      .source = "arXiv:2207.02098 (Neural networks and the Chomsky hierarchy), bucket sort",
      .datasheet =
          "Source: n numbers, each drawn uniformly and with repetition from 0..symbols-1; n is\n"
          "drawn uniformly from min_length to length. Number s is token s+1 of the source.\n"
          "Label: the output, the n numbers in ascending order; number s is output token s.\n"
          "Score: exact match, the place of the end included.\n"
          "Evidence: every position of the source; their order is free.\n"
          "Distance: n - 1, from the first number to the last. Slices: length, which is n.",
      .metric = "exact_match",
      .params = sequences::symbol_params(16),
      .presets = {{"small", "6 to 12 numbers", {{"length", 12}, {"min_length", 6}}},
                  {"standard", "16 to 32 numbers", {{"length", 32}, {"min_length", 16}}}},
      .make = make_task<Sort>};
}

}  // namespace attn::tasks
