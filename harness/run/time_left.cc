// Running sums of forecasts; see time_left.h.
#include "harness/run/time_left.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/plan/total_time.h"

namespace attn {
namespace {

// Seconds of forecast that what is known before weighs as much as.
constexpr double kPrior = 2;

double pace_of(double spent, double done, double before) {
  return std::clamp((spent + kPrior * before) / (done + kPrior), 0.1, 10.0);
}

}  // namespace

TimeLeft::TimeLeft(const Plan& plan, int jobs) : open_(plan.cells.size()) {
  std::map<std::string, size_t> lanes;
  for (const Cell& cell : plan.cells) {
    const Measure measure = cell.key.measure;
    const std::string task =
        fmt::format("{} {}", name_of(measure), cell.key.task ? cell.key.task->name : "");
    const std::string variant = measure == Measure::accuracy ? cell.key.variant.name : "";
    const auto [lane, is_new] = lanes.emplace(task + " " + variant, lanes_.size());
    if (is_new) lanes_.push_back({measure, task, {}});
    lane_of_.push_back(lane->second);
    if (measure == Measure::accuracy && !cell.is_piloted) by_formula_ = true;
    shares_.push_back(share_of(cell, jobs));
    wholes_.push_back(shares_.back());
    jobs_of_.push_back(shares_.back() > 0 ? cell.forecast_s / shares_.back() : 1);
    lanes_[lane->second].sums.left += shares_.back();
    measures_[measure].left += shares_.back();
    tasks_[task].left += shares_.back();
  }
}

void TimeLeft::drop(size_t cell) {
  const double share = std::exchange(shares_[cell], 0);
  Lane& lane = lanes_[lane_of_[cell]];
  for (Sums* sums : {&lane.sums, &tasks_[lane.task], &measures_[lane.measure]}) sums->left -= share;
  open_--;
}

void TimeLeft::spend(size_t cell, double fraction, double seconds) {
  const double share = std::min(fraction * wholes_[cell], shares_[cell]);
  shares_[cell] -= share;
  Lane& lane = lanes_[lane_of_[cell]];
  for (Sums* sums : {&lane.sums, &tasks_[lane.task], &measures_[lane.measure]}) {
    sums->left -= share;
    sums->done += share;
    sums->spent += seconds / jobs_of_[cell];
  }
}

double TimeLeft::seconds_left() const {
  if (open_ == 0) return 0;  // not what rounding left of the sums
  double seconds = 0;
  for (const Lane& lane : lanes_) {
    const Sums &task = tasks_.at(lane.task), &measure = measures_.at(lane.measure);
    double pace = lane.measure == Measure::accuracy && by_formula_ ? training_pace_ : 1;
    for (const Sums* sums : {&measure, &task, &lane.sums})
      pace = pace_of(sums->spent, sums->done, pace);
    seconds += std::max(0.0, lane.sums.left) * pace;
  }
  return seconds;
}

}  // namespace attn
