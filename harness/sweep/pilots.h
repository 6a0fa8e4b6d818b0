// What a training step, an evaluation and the shortcuts of a cell take on this machine, from a few
// steps of the cell itself, kept in a file per user: what forecasts of accuracy cells stand on.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/cell/request.h"
#include "harness/sweep/sweep.h"
#include "harness/sweep/user_cache.h"

namespace attn {

// Seconds, see PilotFigures; those of the shortcuts are 0 where they are not known.
struct Pilot {
  double step_s = 0, evaluation_s = 0, shortcuts_s = 0;
};

// Pilots by machine, program and everything in a key that sets the pace; not by seed, number of
// steps or learning rate.
class Pilots {
 public:
  explicit Pilots(std::string file);                    // a UserCache
  std::optional<Pilot> find(const CellKey& key) const;  // nullopt: the training was not measured
  bool holds(PilotOf what, const CellKey& key) const;
  // What a pilot's process replied; on disk at once, best effort.
  void keep(PilotOf what, const CellKey& key, const PilotFigures& figures);

 private:
  std::optional<PilotFigures> kept(const std::string& hash) const;

  UserCache all_;  // by the hash of what sets the pace
};

// Measures, `jobs` at a time, the pilots that the plan's accuracy cells lack, keeps them in
// request.pilots and forecasts the plan anew. A pilot that fails leaves the formula's forecast.
// `report` gets a line before each. Returns SIGINT or SIGTERM when interrupted, else 0.
int run_pilots(const SweepRequest& request, Plan& plan,
               const std::function<void(const std::string&)>& report);

// What a cell adds to the time of the whole sweep: accuracy and fidelity cells go `jobs` at a time.
double share_of(const Cell& cell, int jobs);
// Of all cells; no less than the longest of them, which no further job shortens.
double forecast_total(const SweepRequest& request, const Plan& plan);
int jobs_of(const SweepRequest& request);  // as asked, else one per core

}  // namespace attn
