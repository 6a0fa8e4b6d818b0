// Tests of a change against a band around no change; see change.h.
#include "harness/compare/change.h"

#include <algorithm>
#include <cmath>

#include "harness/measure/statistics.h"

namespace attn {
namespace {

constexpr double kAlpha = 0.05;
constexpr double kMostDegrees = 1e6;  // then t is normal, to six digits

double degrees_of(const Change& change) { return std::min(change.degrees, kMostDegrees); }

}  // namespace

double reach(const Change& change, double level) {
  if (!(change.error > 0)) return 0;
  return change.error * student_t_above((1 - level) / 2, degrees_of(change));
}

double probability_within(const Change& change, double margin) {
  const double beyond = std::abs(change.value) - margin;
  if (!(beyond > 0)) return 1;
  if (!(change.error > 0)) return 0;
  return std::min(1.0, 2 * student_t_tail(beyond / change.error, degrees_of(change)));
}

Judgement verdict_of(const Change& change, double margin, double corrected) {
  if (corrected <= kAlpha && std::abs(change.value) > margin)
    return change.value > 0 ? Judgement::worse : Judgement::better;
  if (std::abs(change.value) + reach(change) <= margin) return Judgement::same;
  return Judgement::undecided;
}

}  // namespace attn
