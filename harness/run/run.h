// Runs: the cells of a plan become rows, each measured in a process of its own, with limits,
// resumable at any moment.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness/plan/plan.h"

namespace attn {

struct Progress {
  size_t done = 0, total = 0, failures = 0;
  std::string phase;       // "calibration", "contract checks", or a measure
  size_t phase_total = 0;  // cells or subjects of the phase; 0: it counts none
  std::string current;     // label of the cell
  double seconds_left = 0;
  const Row* row = nullptr;  // the row just finished, or null
};

struct SweepResult {
  std::vector<Row> rows;  // all cells of the plan, those read from an existing file and twins too
  RunLine run;
  size_t reused = 0;         // how many of them the file held already
  int signal = 0;            // SIGINT or SIGTERM when interrupted
  bool gate_failed = false;  // a variant's quick checks were red
};

// Runs what the file does not hold yet, and skips nothing else: a row of any status counts as held
// (unless request.retry names it: then its line is taken out). Speed cells run alone,
// those that differ only in the variant in rounds of random order, each visit a process of its own;
// memory cells alone; fidelity and accuracy cells `jobs` at a time. A variant or task whose quick
// checks are red has its cells written as `failed`; checks that passed are not repeated while
// nothing that they depend on changes. A file of another machine or build is an
// Error that names the difference; a file of another sweep is widened: its cells stay, and a
// further run line says what was asked. The first SIGINT/SIGTERM ends the current cells and
// returns: what is not finished is not recorded, speed cells with rounds to go among them, and
// resuming runs it. A second one ends the process at once.
SweepResult run_sweep(const SweepRequest& request, const Plan& plan,
                      const std::function<void(const Progress&)>& report);

int exit_code(const SweepResult& result);  // 0, 1, 5, 130, 143 as in the contract

}  // namespace attn
