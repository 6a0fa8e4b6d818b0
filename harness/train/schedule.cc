// Rates and ends; see schedule.h. Costs nothing beside a step.
#include "harness/train/schedule.h"

#include <algorithm>
#include <cmath>

#include "harness/train/optimizer.h"

namespace attn {

bool is_wsd(const Params& training) {
  const auto found = training.values().find(kSchedule);
  return found != training.values().end() && std::get<std::string>(found->second) == kWsd;
}

int64_t expected_steps(const Params& training) {
  const int64_t steps = training.integer("steps"), patience = training.integer("patience");
  if (!is_wsd(training) || patience == 0) return steps;
  const auto stable =
      static_cast<double>(training.integer("warmup") + patience * training.integer("eval_every"));
  const double share = training.number("target") >= 0 ? 0.5 : 1;
  return std::min<int64_t>(steps, std::llround(share * stable * (1 + training.number(kDecay))));
}

Schedule::Schedule(const Params& training)
    : is_wsd_(is_wsd(training)),
      steps_(training.integer("steps")),
      warmup_(training.integer("warmup")),
      patience_(training.integer("patience")),
      eval_every_(training.integer("eval_every")),
      peak_(training.number("learning_rate")) {
  if (!is_wsd_) return;
  min_delta_ = training.number(kMinDelta);
  share_ = training.number(kDecay);
  // The latest decay: as long as one that begins there is, it ends with the last step.
  latest_begin_ = static_cast<int64_t>(static_cast<double>(steps_) / (1 + share_));
  latest_begin_ = std::min(latest_begin_, steps_ - kLeastDecay * eval_every_);
  latest_begin_ = std::clamp(latest_begin_, std::min(warmup_, steps_), steps_);
  decay_begin_ = latest_begin_;
  decay_end_ = steps_;
}

double Schedule::rate(int64_t step) const {
  if (!is_wsd_) return learning_rate(step, steps_, warmup_, peak_);
  if (step < warmup_) return peak_ * static_cast<double>(step + 1) / static_cast<double>(warmup_);
  if (step < decay_begin_) return peak_;
  const double gone = static_cast<double>(step - decay_begin_) /
                      static_cast<double>(std::max<int64_t>(1, decay_end_ - decay_begin_));
  return peak_ * (1 - std::sqrt(std::min(1.0, gone)));
}

bool Schedule::improves(double score, double on, bool is_error, double times) const {
  const double delta = times * min_delta_;
  return is_error ? score < on * (1 - delta) : score > on + delta;
}

void Schedule::validated(int64_t steps, double score, bool is_error) {
  if (!best_ || improves(score, *best_, is_error, 1)) {
    best_ = score;
    stale_ = 0;
  } else {
    stale_++;
  }
  if (!is_wsd_ || patience_ == 0) return;
  if (has_plateau_) {
    if (steps < decay_end_ || !improves(*best_, best_before_, is_error, kFresh)) return;
    has_plateau_ = false;
    stale_ = 0;
    decay_begin_ = std::max(latest_begin_, steps);
    decay_end_ = steps_;
    return;
  }
  if (steps < warmup_ || steps > decay_begin_ || stale_ < patience_) return;
  has_plateau_ = true;
  best_before_ = *best_;
  const double share = share_ * static_cast<double>(steps);
  const auto length = std::max(static_cast<int64_t>(std::ceil(share)), kLeastDecay * eval_every_);
  decay_begin_ = steps;
  decay_end_ = std::min(steps + length, steps_);
}

std::string Schedule::ended_by(int64_t steps) const {
  if (is_wsd_ && has_plateau_ && steps >= decay_end_) return "plateau";
  if (steps >= steps_) return "steps";
  return !is_wsd_ && patience_ > 0 && stale_ >= patience_ ? "patience" : "";
}

}  // namespace attn
