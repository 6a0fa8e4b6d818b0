// One sweep under way: the file, the rows so far, and the phases in which the missing cells are
// run. Private to harness/sweep.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/process.h"
#include "harness/sweep/remaining.h"
#include "harness/sweep/sweep.h"

namespace attn {

class Sweeper {
 public:
  Sweeper(const SweepRequest& request, const Plan& plan,
          const std::function<void(const Progress&)>& report);
  SweepResult run();

 private:
  // sweeper.cc
  void adopt_existing();
  std::vector<size_t> missing(std::string_view measure) const;
  bool stopping() const;
  void run_pooled(std::vector<size_t> cells, int jobs);
  void begin_phase(const std::string& name, size_t total);
  Progress progress(const std::string& current) const;
  void announce(const std::string& current) const;
  // A cell is done: its row goes to disk, then to `report`.
  void finish(size_t cell, const Json& reply, const std::string& started_at, double duration_s);
  Json row_of(size_t cell, const Json& reply, const std::string& started_at,
              double duration_s) const;
  // row_of(); where that is no row of the schema, a row that says so, with status `failed`.
  Json sound_row(size_t cell, const Json& reply, const std::string& started_at,
                 double duration_s) const;
  Json measure_request(size_t cell, int jobs) const;
  ChildSpec child(const Json& request, double timeout_s) const;

  // sweeper_run_line.cc
  void begin_run();
  bool continue_run(const Json& run);  // false: the file holds none
  void set_pace_of(const Json& run);

  // sweeper_gate.cc
  void check_contracts();

  // sweeper_rounds.cc
  void run_speed();
  void run_group(const std::vector<size_t>& cells);
  Json merged_speed(size_t cell, const std::vector<double>& samples,
                    const std::vector<int64_t>& visits, const Json& reply) const;

  const SweepRequest& request_;
  const Plan& plan_;
  const std::function<void(const Progress&)>& report_;
  RowWriter writer_;
  SweepResult result_;
  std::map<size_t, Json> rows_;  // by the cell's index in the plan
  const double timeout_s_;       // of a cell
  const int jobs_;
  int64_t free_bytes_ = 0;  // that the cells may use, all together
  uint64_t order_seed_ = 0;
  bool failed_fast_ = false;
  size_t failures_ = 0;
  std::string phase_;
  size_t phase_total_ = 0;
  Remaining remaining_;
};

}  // namespace attn
