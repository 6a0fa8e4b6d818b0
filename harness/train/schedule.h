// The learning rate of each step, and when a training ends. `cosine` has a fixed length. `wsd`
// (warm-up, stable, decay: Hu et al. 2024, arXiv:2404.06395) has none: the rate is constant until
// validation no longer improves, then falls by 1 - sqrt (Hägele et al. 2024, arXiv:2405.18392).
// Where the fall gains much, the rate is constant again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/params.h"

namespace attn {

// Names of settings that other parts treat apart, and values of `schedule`.
inline constexpr const char* kSchedule = "schedule";
inline constexpr const char* kWsd = "wsd";
inline constexpr const char* kMinDelta = "min_delta";
inline constexpr const char* kDecay = "decay";
// What `patience` and `steps` are with `wsd` where nobody names them; see docs/method.md.
inline constexpr int64_t kWsdPatience = 20, kWsdSteps = 20000;
// A decay is at least so many validations long: fewer would anneal nothing.
inline constexpr int64_t kLeastDecay = 5;
// A fall that gains more than so many times min_delta has found something new: the plateau before
// it was that of a shortcut, or of too high a rate, and the training goes on from there.
inline constexpr double kFresh = 10;

// Whether `schedule` is wsd; false where it is not named, as in rows from before there was one.
bool is_wsd(const Params& training);

// Steps of a training for forecasts. With wsd, of one whose validation does not improve after the
// warm-up; half as many where there is a target, which about half of all trainings reach early.
int64_t expected_steps(const Params& training);

class Schedule {
 public:
  explicit Schedule(const Params& training);
  double rate(int64_t step) const;  // of a step in 0 .. steps - 1
  // The score that validation found after so many steps. With `is_error` less is better, and the
  // setting min_delta is a share of the best score. Comes before ended_by() of these steps.
  void validated(int64_t steps, double score, bool is_error);
  // Why the training ends after so many steps: "steps", "plateau", "patience"; "" where it goes on.
  std::string ended_by(int64_t steps) const;
  // Whether a fall or the training ends after so many steps, so that a validation is due.
  bool is_end(int64_t steps) const { return steps == decay_end_ || steps == steps_; }

 private:
  // By more than `times` the setting min_delta.
  bool improves(double score, double on, bool is_error, double times) const;
  bool is_wsd_;
  int64_t steps_, warmup_, patience_, eval_every_;
  double peak_, min_delta_ = 0, share_ = 0;
  int64_t latest_begin_ = 0, decay_begin_ = 0, decay_end_ = 0;
  bool has_plateau_ = false;  // the decay began because validation no longer improved
  std::optional<double> best_;
  double best_before_ = 0;  // the decay
  int64_t stale_ = 0;       // validations since `best_`
};

}  // namespace attn
