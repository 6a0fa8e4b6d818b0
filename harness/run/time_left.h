// The forecast of what is left of a sweep, corrected by the pace so far: of each measure, of each
// task among the accuracy cells, since a formula errs alike within them, and of each variant on a
// task, since a variant that stops training early does so with every seed. Running sums, since the
// forecast is asked for at every cell of up to 20,000.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/plan/plan.h"

namespace attn {

class TimeLeft {
 public:
  TimeLeft(const Plan& plan, int jobs);
  // Seconds that training takes on this machine over those that the formula says; used until cells
  // of accuracy are done, unless all forecasts are pilots'.
  void set_training_pace(double pace) { training_pace_ = pace; }
  // `fraction` of the cell's work took `seconds` of its process.
  void spend(size_t cell, double fraction, double seconds);
  void drop(size_t cell);  // nothing more comes of it: it is done, or its row was there before
  double seconds_left() const;

 private:
  struct Sums {
    double left = 0, done = 0, spent = 0;  // forecast to do and done, seconds that the latter took
  };
  struct Lane {  // of a variant on a task
    Measure measure;
    std::string task;
    Sums sums;
  };

  std::vector<Lane> lanes_;
  std::vector<size_t> lane_of_;  // by cell
  std::vector<double> shares_;   // by cell, what is left of its forecast
  std::vector<double> wholes_;   // by cell, its forecast
  std::vector<double> jobs_of_;  // by cell, how many cells of its kind go at a time
  std::map<Measure, Sums> measures_;
  std::map<std::string, Sums> tasks_;
  double training_pace_ = 1;
  bool by_formula_ = false;  // some training has no forecast by a pilot
  size_t open_ = 0;          // cells to do
};

}  // namespace attn
