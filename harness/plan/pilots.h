// What a training step, an evaluation and the shortcuts of a cell take on this machine, from a few
// steps of the cell itself, kept in a file per user: what forecasts of accuracy cells stand on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/cell/request.h"
#include "harness/store/user_cache.h"

namespace attn {

// Seconds, see PilotFigures; those of the shortcuts are 0 where they are not known.
struct Pilot {
  double step_s = 0, evaluation_s = 0, shortcuts_s = 0;
};

// Cells of one hash share a pilot: of machine, program and everything in a key that sets the pace;
// not of seed, number of steps or learning rate.
std::string pilot_hash(PilotOf what, const CellKey& key);

// The pilots that a file keeps, by that hash.
class Pilots {
 public:
  explicit Pilots(std::string file);                    // a UserCache
  std::optional<Pilot> find(const CellKey& key) const;  // nullopt: the training was not measured
  bool holds(PilotOf what, const CellKey& key) const;
  // Seconds that trainings take on this machine over those that the formula says: the median of the
  // kept pilots of the task or, where the task has none, of all; nullopt: none is kept.
  std::optional<double> pace(const std::string& task) const;
  bool holds_pace(const std::string& task) const { return paces_.count(task) > 0; }
  // What a pilot's process replied; on disk at once, best effort.
  void keep(PilotOf what, const CellKey& key, const PilotFigures& figures);

 private:
  std::optional<PilotFigures> kept(const std::string& hash) const;
  void keep_pace(const CellKey& key);
  void read_paces();

  UserCache all_;  // pilots by the hash of what sets the pace; paces by machine, task and that hash
  std::map<std::string, std::vector<double>> paces_;  // of this machine, by task
};

}  // namespace attn
