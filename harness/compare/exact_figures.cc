// Ratios of exact figures; see exact_figures.h.
#include "harness/compare/exact_figures.h"

#include <algorithm>
#include <utility>

namespace attn {
namespace {

// Relative errors up to this are those of rounding in single precision, which another order of
// additions changes.
constexpr double kRounding = 1e-5;

}  // namespace

Compared compared_exactly(const RowPair& pair, double threshold) {
  Compared shown{.measure = pair.before->key.measure,
                 .label = pair.label,
                 .key = pair.before->key,
                 .basis = "exact"};
  double least = 0;
  bool is_cost = true;  // more is worse
  if (shown.measure == Measure::memory) {
    shown.unit = "bytes";
    shown.before = static_cast<double>(pair.before->memory().peak_bytes);
    shown.after = static_cast<double>(pair.after->memory().peak_bytes);
  } else if (shown.measure == Measure::reach) {
    shown.unit = "positions";
    shown.before = static_cast<double>(farthest(pair.before->reach()));
    shown.after = static_cast<double>(farthest(pair.after->reach()));
    is_cost = false;
  } else {
    shown.unit = "relative error";
    shown.before = pair.before->fidelity().relative_error;
    shown.after = pair.after->fidelity().relative_error;
    least = kRounding;
  }
  if (shown.before > 0) shown.change = shown.after / shown.before;
  const bool is_nothing = std::max(shown.before, shown.after) <= least;
  const auto [less, more] = is_cost ? std::pair(Judgement::better, Judgement::worse)
                                    : std::pair(Judgement::worse, Judgement::better);
  shown.verdict = is_nothing                                     ? Judgement::same
                  : shown.after > shown.before * (1 + threshold) ? more
                  : shown.before > shown.after * (1 + threshold) ? less
                                                                 : Judgement::same;
  return shown;
}

}  // namespace attn
