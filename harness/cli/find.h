// `run --find crossing`: a search for the lengths at which variants and exact attention change
// places, as sweeps of a few lengths that widen one rows file. Private to `run`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/cli/options.h"
#include "harness/crossing/contests.h"
#include "harness/plan/plan.h"
#include "harness/run/run.h"

namespace attn::cli {

// Error (usage) where options do not go with a search.
void check_find_options(const Arguments& arguments, const SweepRequest& request);

class CrossingSearch {
 public:
  // Plans the first step. The range of a contest is from the least to the greatest length that the
  // request asks for. Error (usage) where the sweep holds what has no crossing.
  explicit CrossingSearch(const SweepRequest& request);

  const Plan& next() const { return step_; }  // without cells: the search has ended
  size_t number() const { return number_; }   // of the next step, from 1
  size_t most_cells() const;                  // that the whole search may measure
  // Measures the next step, or takes its rows from the file, and plans the one after it.
  void take_step(const std::function<void(const Progress&)>& report);

  const std::vector<Contest>& contests() const { return contests_; }
  const std::vector<Standing>& found() const { return standings_; }
  const SweepResult& result() const { return result_; }  // of all steps

 private:
  using Lengths = std::map<int64_t, std::set<size_t>>;  // length -> the contests that want it
  void plan_step();
  // The cells of these lengths that no step has measured; what the sweep leaves out becomes absent.
  std::vector<Cell> cells_of(const Lengths& wanted);

  SweepRequest request_;
  std::vector<Contest> contests_;
  std::vector<Standing> standings_;
  std::set<std::string> known_;  // cells of all steps
  RunConfig config_;             // of every step, so that the file holds one run line
  Plan step_;
  size_t number_ = 1;
  SweepResult result_;
};

}  // namespace attn::cli
