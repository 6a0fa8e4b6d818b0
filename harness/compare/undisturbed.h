// What times of a disturbed machine say of the undisturbed ones. A disturbance only lengthens a
// time, and by no more than the witness and the system's counts say: so the undisturbed time has
// bounds, and a change beyond them is a change. docs/method.md states the rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "harness/cell/row.h"
#include "harness/compare/change.h"
#include "harness/compare/variances.h"
#include "harness/measure/witness.h"

namespace attn {

// What rows show of the machine that they were measured on.
class MachineSeen {
 public:
  MachineSeen() = default;
  explicit MachineSeen(int64_t cores) : cores_(cores) {}
  void add(const Row& row);
  const Witness* best(int64_t threads) const;  // that any visit saw; nullptr: none had a witness
  int64_t cores() const { return cores_; }

 private:
  int64_t cores_ = 1;
  std::map<int64_t, Witness> best_;  // by threads
};

// Of the logarithm of the fastest sample of an undisturbed visit.
struct TimeBounds {
  double low = 0, high = 0;
  Variance of_visit;  // no degrees: a single visit
  int64_t visits = 1;
};
// Of a speed row that is ok, by its visits and their witness; nullopt where nothing bounds the
// disturbance. `spread`: of the cell, see least_spread().
std::optional<TimeBounds> time_bounds(const Row& row, const MachineSeen& seen, double spread);
// By how much the logarithms of the slowest and of the fastest sample differ, in that visit of the
// rows where they differ least: what every visit of a cell has is no disturbance.
double least_spread(const std::vector<const Row*>& rows);

// A change of logarithms between bounds, on top of which visits scatter.
struct BoundedChange {
  double least = 0, most = 0;
  double variance = 0, degrees = 0;  // of the scatter, as the visits have it; no degrees: unknown
  int64_t rows = 0;
  int64_t least_ways = 1, most_ways = 1;  // choices of the fastest visits that a bound rests on

  // The 95 % interval of the change.
  double low() const;
  double high() const;
  // The probability of bounds at least as far beyond the band [-margin, margin] where the true
  // change is in the band; 1 where they reach into it.
  double probability_within(double margin) const;
};
// The sum of `added` less that of `taken`.
BoundedChange change_within(const std::vector<TimeBounds>& added,
                            const std::vector<TimeBounds>& taken);

// As for a Change; `corrected` is of its probability_within().
Judgement verdict_of(const BoundedChange& change, double margin, double corrected);

}  // namespace attn
