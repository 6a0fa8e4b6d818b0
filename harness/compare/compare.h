// Two rows files side by side: what became slower, larger or less accurate, by more than chance.
// docs/method.md states the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/compare/change.h"
#include "harness/compare/row_pairs.h"

namespace attn {

struct CompareRequest {
  double threshold = 0.02;  // changes up to this share are of no interest
  std::vector<Measure> measures = {kMeasures.begin(), kMeasures.end()};
  bool across_machines = false;  // times as ratios to exact attention of the same file
  bool across_builds = false;    // the settings of the builds are what is compared
};

struct Compared {
  Measure measure = Measure::speed;
  std::string label;
  CellKey key;       // of accuracy without its seed
  std::string unit;  // "s", "ratio to full", "bytes", "accuracy", "relative error"
  double before = 0, after = 0;
  bool is_ratio = true;             // else a change is a difference: of scores
  std::optional<double> change;     // after over before, or after less before; nullopt: over 0
  std::optional<double> low, high;  // its 95 % interval
  // By how much `high` over `low` is greater, because the machine was disturbed; nullopt: it was
  // not, or nothing says by how much. `before` and `after` are then of the fastest visits.
  std::optional<double> widened;
  std::optional<double> p, corrected;  // of no change beyond the threshold; by holm()
  Judgement verdict = Judgement::undecided;
  std::string basis;  // "3 and 3 visits", "2 seeds", "1024 examples of one seed", "exact"
};

struct Comparison {
  double threshold = 0;
  std::vector<Compared> pairs;
  std::vector<LeftOut> left_out;
  int64_t before_only = 0, after_only = 0;
  std::vector<std::string> notes;

  int64_t count(Judgement verdict) const;
  bool has_regression() const { return count(Judgement::worse) > 0; }
};

// Error where times of two machines, or of two builds, would be compared without being asked for.
Comparison compare(const RowsFile& before, const RowsFile& after, const CompareRequest& request);

// "slower", "more memory", "less accurate", "same": the verdict in the words of the measure.
std::string verdict_word(Measure measure, Judgement verdict);

}  // namespace attn
