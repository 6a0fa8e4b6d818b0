// Base of the tasks reverse and sort: a source of random symbols and an output of the same length.
#pragma once

#include <string_view>
#include <vector>

#include "tasks/api/task.h"

namespace attn::sequences {

// Needs the parameters of symbol_params(). Symbol s of [0, symbols) is token s + 1 of the source
// and token s of the output.
class SymbolTask : public Task {
 protected:
  SymbolTask(const Params& params, std::string_view name);
  int64_t symbols() const { return symbols_; }
  static std::vector<int32_t> source(const Example& example);  // the symbols of the source

 private:
  // The output symbols for the source symbols, of the same number.
  virtual std::vector<int32_t> answer(std::vector<int32_t> symbols) const = 0;

  Example do_example(Rng& random) const final;
  TaskShape do_shape() const final;
  // Of a uniform random guess among the symbols and the end, for each place of the output and for
  // its end.
  double do_chance() const final;
  std::string do_draw(const Example& example) const final;

  int64_t symbols_, length_, min_length_;
};

// symbols (with this default), length, min_length, train_examples.
std::vector<ParamSpec> symbol_params(int64_t symbols);

}  // namespace attn::sequences
