// One sweep under way: the file, the rows so far, and the phases in which the missing cells are
// run. Private to harness/run.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/temporary_folder.h"
#include "harness/cell/request.h"
#include "harness/plan/plan.h"
#include "harness/process/process.h"
#include "harness/run/run.h"
#include "harness/run/speed_cell.h"
#include "harness/run/time_left.h"

namespace attn {

class Sweeper {
 public:
  Sweeper(const SweepRequest& request, const Plan& plan,
          const std::function<void(const Progress&)>& report);
  SweepResult run();

 private:
  // sweeper.cc
  void adopt_existing();
  std::vector<size_t> missing(std::optional<Measure> measure = {}) const;
  bool stopping() const;
  void run_pooled(std::vector<size_t> cells, int jobs);
  // The order in which a sweep learns soonest how long the rest takes: the first seed of all cells
  // before the second, and of each task a cell before any task's next one. The longest go first, so
  // that none of them runs alone at the end.
  std::vector<size_t> in_order_of_learning(std::vector<size_t> cells) const;
  void begin_phase(const std::string& name, size_t total);
  Progress progress(const std::string& current) const;
  void announce(const std::string& current) const;
  // A cell is done: its row goes to disk, then to `report`.
  void finish(size_t cell, const CellResult& result, const std::string& started_at,
              double duration_s);
  Row make_row(size_t cell, const CellResult& result, const std::string& started_at,
               double duration_s) const;
  Request measure_request(size_t cell, int jobs);
  ChildSpec child(const Request& request, double timeout_s) const;

  // sweeper_run_line.cc
  void read_existing();
  void read_held();  // the scores of request.held
  void begin_run();
  void hold_run(const Json& line);
  void write_runs(const RunLine& run);  // to both files, where there are two
  Json line_of(const RunLine& run) const;
  bool continue_run(const RunLine& run);  // false: the file holds none
  void set_pace_of(const RunLine& run);

  // sweeper_gate.cc
  void check_contracts();

  // sweeper_rounds.cc
  void run_speed();
  void run_group(const std::vector<size_t>& cells);
  struct Answer {
    Reply reply;
    double seconds = 0;
    bool was_stopped = false;
  };
  // nullopt: interrupted.
  std::optional<Answer> visit_once(size_t cell, const Request& request, double timeout_s) const;
  // One visit of the cell, which is `fraction` of its planned work, and its row if it is done.
  void visit(SpeedCell& cell, int64_t repetitions, double fraction);
  bool witness_fell(size_t cell, const Visit& visit);  // against the best that the sweep saw
  std::vector<int64_t> cpus_of(const CellKey& key) const;

  const SweepRequest& request_;
  const Plan& plan_;
  const std::function<void(const Progress&)>& report_;
  RowWriter writer_;
  std::optional<RowWriter> twin_writer_;
  std::optional<TemporaryFolder> folder_;  // made when a cell needs it
  std::string twin_run_;                   // id
  std::vector<RunLine> held_runs_;         // of the file when it was opened
  // Of each, what its `config` says beside what was resolved: the text of a sweep file, a search.
  std::vector<std::string> held_beside_;
  std::vector<Row> held_rows_;
  std::vector<std::pair<std::string, Row>> held_scores_;  // of other files, which come first
  std::set<std::string> retried_;  // cells whose rows are taken out of the file
  SweepResult result_;
  std::map<size_t, Row> rows_;  // by the cell's index in the plan
  const double timeout_s_;      // of a cell
  const int jobs_;
  int64_t free_bytes_ = 0;  // that the cells may use, all together
  uint64_t order_seed_ = 0;
  std::map<int, Witness> best_witness_;  // by number of threads, the best rates so far
  int64_t visits_ = 0, repeats_ = 0;     // visits made, and those of them that were made again
  bool failed_fast_ = false;
  size_t failures_ = 0;
  std::string phase_;
  size_t phase_total_ = 0;
  TimeLeft time_left_;
};

}  // namespace attn
