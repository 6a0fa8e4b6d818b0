// A speed cell under way: what its visits found so far, and its result. Private to harness/run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cell/request.h"
#include "harness/run/stopping.h"

namespace attn {

struct TakenVisit {
  Visit visit;
  bool was_stopped = false;   // in mid-measurement
  bool fell = false;          // the witness told of a disturbance
  bool is_disturbed = false;  // by any rule of noisy.h
};

class SpeedCell {
 public:
  // While `calm_within_s` lasts, visits go on until `rounds` of them were not disturbed, and only
  // these count then. 0: visits do not go on for that.
  SpeedCell(size_t place, const CellKey& key, const Stopping& stopping, int64_t rounds,
            double calm_within_s)
      : cell(place),
        key_(&key),
        stopping_(stopping),
        rounds_(rounds),
        calm_within_s_(calm_within_s) {}

  void add(const TakenVisit& taken);
  // Why the cell is done; nullopt: it needs another visit.
  std::optional<VisitsEnd> end(uint64_t seed);
  // Of all visits; `machine` is null where nothing was calibrated.
  CellResult result(uint64_t seed, const Calibration* machine) const;
  // With what was seen of the machine, whether or not the visits gave a result.
  CellResult marked(CellResult result, uint64_t seed, int64_t cores) const;

  const size_t cell;   // index in the plan
  double seconds = 0;  // that its visits took
  int64_t repeats = 0;
  int64_t draws = 0;  // of inputs, one a visit
  std::vector<int64_t> cpus;
  std::string started_at;
  bool is_done = false;  // its row is written

 private:
  void count(const TakenVisit& taken);
  int64_t calm_visits() const;
  void count_calm_visits_alone();

  const CellKey* key_;
  Stopping stopping_;
  int64_t rounds_;
  double calm_within_s_;
  std::vector<TakenVisit> taken_;  // where visits may go on for calm ones
  // Of the visits that count:
  std::vector<double> times_;
  std::vector<double> later_s_;                 // of calls after the first, of mode serve
  std::vector<std::vector<ServedCall>> calls_;  // of each visit, where requests arrive
  std::vector<double> padded_s_;                // of padded passes, of packed sequences
  std::vector<int64_t> sizes_;                  // of times_, how many each visit gave
  Witnessed witness_;
  std::optional<Disturbance> disturbance_;
  MarkedPasses marked_;
  std::optional<Verified> verified_;
  Visit last_;
  std::optional<VisitsEnd> end_;
  bool was_stopped_ = false, fell_ = false;
};

}  // namespace attn
