// One run of the sweeper a round; see halving_run.h.
#include "harness/run/halving_run.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "harness/plan/halving.h"

namespace attn {

bool has_halving(const Plan& grid) {
  return std::any_of(grid.cells.begin(), grid.cells.end(),
                     [](const Cell& cell) { return cell.is_halved; });
}

SweepResult run_halving(const SweepRequest& asked, const Plan& grid,
                        const std::function<void(const Progress&)>& report) {
  ATTN_CHECK(asked.output != kStdoutPath,
             "--output - does not go with --tune-by halving, which goes on from the rows; name a "
             "file");
  SweepRequest request = asked;
  SweepResult all;
  std::deque<Row> held;  // whose addresses stay
  std::map<std::string, const Row*> rows;
  while (true) {
    Plan round;
    round.config = grid.config;  // of every round, so that the file holds one run line
    for (Cell& cell : halved(request, grid.cells, rows))
      if (!rows.count(cell.id)) round.cells.push_back(std::move(cell));
    if (round.cells.empty()) break;
    SweepResult part = run_sweep(request, round, report);
    request.force = false;  // the rows of the first round stay
    request.resume = true;
    bool has_failed = false;
    for (Row& row : part.rows) {
      has_failed = has_failed || row.is_failure();
      held.push_back(std::move(row));
      rows[held.back().cell] = &held.back();
    }
    all.run = std::move(part.run);
    all.reused += part.reused;
    all.signal = part.signal;
    all.gate_failed = all.gate_failed || part.gate_failed;
    if (part.signal || (has_failed && request.fail_fast)) break;
  }
  for (Row& row : held) all.rows.push_back(std::move(row));
  return all;
}

}  // namespace attn
