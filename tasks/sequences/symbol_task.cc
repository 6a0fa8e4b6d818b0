// Sources of uniform symbols and uniform length; see symbol_task.h. O(length) per example, and the
// cost of answer().
#include "tasks/sequences/symbol_task.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/recall/draws.h"

namespace attn::sequences {

SymbolTask::SymbolTask(const Params& params, std::string_view name)
    : Task(params),
      symbols_(params.integer("symbols")),
      length_(params.integer("length")),
      min_length_(params.integer("min_length")) {
  if (min_length_ == 0) min_length_ = (length_ + 1) / 2;
  ATTN_CHECK(min_length_ <= length_, "{}: min_length={} exceeds length={}", name, min_length_,
             length_);
  recall::check_inputs(name, symbols_, min_length_, "symbols or min_length");
}

std::vector<int32_t> SymbolTask::source(const Example& e) {
  std::vector<int32_t> symbols = e.tokens;
  for (int32_t& symbol : symbols) symbol -= 1;
  return symbols;
}

Example SymbolTask::do_example(Rng& random) const {
  Example e;
  const int64_t n = random.between(min_length_, length_);
  for (int64_t i = 0; i < n; i++)
    e.tokens.push_back(static_cast<int32_t>(random.between(1, symbols_)));
  e.target = answer(source(e));
  e.evidence = first_positions(e.tokens.size());
  e.slices = {{"length", static_cast<double>(n)}};
  return e;
}

TaskShape SymbolTask::do_shape() const {
  return {.length = length_, .vocab = symbols_ + 1, .classes = symbols_, .outputs = length_};
}

double SymbolTask::do_chance() const {
  const double guess = 1 / static_cast<double>(symbols_ + 1);
  double right = guess, sum = 0;  // right: of an output of n symbols and its end
  for (int64_t n = 1; n <= length_; n++) {
    right *= guess;
    if (n >= min_length_) sum += right;
  }
  return sum / static_cast<double>(length_ - min_length_ + 1);
}

std::string SymbolTask::do_draw(const Example& e) const {
  std::string text = "source";
  for (const int32_t symbol : source(e)) text += fmt::format(" {}", symbol);
  text += "\noutput";
  for (const int32_t symbol : e.target) text += fmt::format(" {}", symbol);
  return text + "\n";
}

std::vector<ParamSpec> symbol_params(int64_t symbols) {
  return {{"symbols", symbols, "different symbols", 2, 1e6},
          {"length", 32, "longest source, and longest output", 1, 1e6},
          {"min_length", 0, "shortest source; 0: half of length, rounded up", 0, 1e6},
          {"train_examples", 100000, "training set, repeated over epochs"}};
}

}  // namespace attn::sequences
