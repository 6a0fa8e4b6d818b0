// What the tasks reverse and sort share: sources of random symbols, to be answered by as many.
#pragma once

#include <string_view>
#include <vector>

#include "tasks/api/task.h"

namespace attn::sequences {

// Parameters: symbols, length, min_length, train_examples; see symbol_params. Symbol s of
// [0, symbols) is token s + 1 of the source and token s of the output.
class SymbolTask : public Task {
 protected:
  SymbolTask(const Params& params, std::string_view name);
  int64_t symbols() const { return symbols_; }
  static std::vector<int32_t> source(const Example& example);  // its symbols

 private:
  virtual std::vector<int32_t> answer(std::vector<int32_t> symbols) const = 0;  // as many

  Example do_example(Rng& random) const final;
  TaskShape do_shape() const final;
  // A guess for each place of the output and for its end, each among the symbols and the end.
  double do_chance() const final;
  std::string do_draw(const Example& example) const final;

  int64_t symbols_, length_, min_length_;
};

std::vector<ParamSpec> symbol_params(int64_t symbols);  // by default so many

}  // namespace attn::sequences
