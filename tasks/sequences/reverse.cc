// reverse: the output is the symbols of the source in reverse order. Grefenstette et al. 2015,
// arXiv:1506.02516, section 4.1 (sequence reversal). O(length) per example.
#include <algorithm>

#include "tasks/sequences/exact_match.h"
#include "tasks/sequences/symbol_task.h"

namespace attn::tasks {
namespace {

class Reverse final : public sequences::SymbolTask {
 public:
  explicit Reverse(const Params& params) : SymbolTask(params, "reverse") {}

 private:
  std::vector<int32_t> answer(std::vector<int32_t> symbols) const override {
    std::reverse(symbols.begin(), symbols.end());
    return symbols;
  }

  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>& test) const override {
    return {{"copy the source", exact_match(test, source)}};
  }
};

}  // namespace

TaskInfo reverse() {
  return {.name = "reverse",
          .summary = "answer a sequence of symbols with the same symbols in reverse order",
          .source = "arXiv:1506.02516 (Learning to transduce with unbounded memory), section 4.1",
          .datasheet =
              "Source: n symbols, each drawn uniformly from 0..symbols-1; n is drawn uniformly\n"
              "from min_length to length. Symbol s is token s+1 of the source.\n"
              "Label: the output, the n symbols in reverse order; symbol s is output token s.\n"
              "Score: exact match, the place of the end included.\n"
              "Evidence: every position of the source; each decides one place of the output.\n"
              "Distance: n - 1, from the first symbol to the last. Slices: length, which is n.",
          .metric = "exact_match",
          .params = sequences::symbol_params(16),
          .presets = {{"small", "6 to 12 symbols", {{"length", 12}, {"min_length", 6}}},
                      {"standard", "16 to 32 symbols", {{"length", 32}, {"min_length", 16}}}},
          .make = make_task<Reverse>};
}

}  // namespace attn::tasks
