// What a cell will roughly take, from pilot measurements on this machine, else from the declared
// cost formulas and a few constants of an ordinary core: for --dry-run and for the time left, never
// for a verdict.
#pragma once

#include <cstdint>

#include "harness/cell/key.h"

namespace attn {

struct Forecast {
  double seconds = 0;
  int64_t bytes = 0;
  bool is_measured = false;    // by its pilot, or the pace of other pilots, on this machine
  double formula_seconds = 0;  // without pilots: the same on every machine
  double steps = 0;            // of a training, see expected_steps()
};

inline constexpr double kForecastPeak = 118e9;  // FLOP/s of the core that the formulas are set for

class Pilots;
class Costs;
// Accuracy cells by their pilot, where there is one, or by formula at the pace of other pilots; all
// else by formula. `costs` remembers from one call to the next.
Forecast forecast_of(const CellKey& key, const Pilots* pilots = nullptr, Costs* costs = nullptr);

}  // namespace attn
