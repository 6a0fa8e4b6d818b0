// A speed cell under way: what its visits found so far, and its result. Private to harness/sweep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cell/request.h"
#include "harness/sweep/stopping.h"

namespace attn {

class SpeedCell {
 public:
  SpeedCell(size_t place, const CellKey& key, const Stopping& stopping)
      : cell(place), key_(&key), stopping_(stopping) {}

  // `fell`: the witness of the visit told of a disturbance.
  void add(const Visit& visit, bool was_stopped, bool fell);
  // Why the cell is done; nullopt: it needs another visit.
  std::optional<VisitsEnd> end(uint64_t seed);
  // Of all visits; `machine` is null where nothing was calibrated.
  CellResult result(uint64_t seed, const Calibration* machine) const;
  // With what was seen of the machine, whether or not the visits gave a result.
  CellResult marked(CellResult result, uint64_t seed, int64_t cores) const;

  const size_t cell;   // index in the plan
  double seconds = 0;  // that its visits took
  int64_t repeats = 0;
  std::vector<int64_t> cpus;
  std::string started_at;
  bool is_done = false;  // its row is written

 private:
  const CellKey* key_;
  Stopping stopping_;
  std::vector<double> times_;
  std::vector<int64_t> sizes_;  // of them, how many each visit gave
  Witnessed witness_;
  std::optional<Disturbance> disturbance_;
  MarkedPasses marked_;
  Visit last_;
  std::optional<VisitsEnd> end_;
  bool was_stopped_ = false, fell_ = false;
};

}  // namespace attn
