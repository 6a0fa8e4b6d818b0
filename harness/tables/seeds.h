// The cells of one variant on one task that differ in nothing but their seed, and means over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/measure/statistics.h"
#include "harness/tables/grid.h"

namespace attn {

using Seeds = std::vector<const Row*>;
using SeedsByPlace = std::map<std::pair<std::string, std::string>, Seeds>;  // variant and task

// The rows of all variants on a task.
inline Seeds members_of(const SeedsByPlace& cells, const std::string& task) {
  Seeds members;
  for (const auto& [place, seeds] : cells)
    if (place.second == task) members.insert(members.end(), seeds.begin(), seeds.end());
  return members;
}

inline Seeds ok_ones(const Seeds& rows) {
  Seeds ok;
  for (const Row* row : rows)
    if (row->is_ok()) ok.push_back(row);
  return ok;
}

// Of accuracy rows whose status is ok.
inline double mean_test(const Seeds& rows) {
  double sum = 0;
  for (const Row* row : rows) sum += row->accuracy().test;
  return sum / static_cast<double>(rows.size());
}

// Whether one of them was cut off: the mean is then no score to rank.
inline bool has_unfinished(const Seeds& ok) {
  return std::any_of(ok.begin(), ok.end(),
                     [](const Row* row) { return is_unfinished(row->accuracy()); });
}

// Half of the 95 % interval of the mean: Student's t over the seeds; of one seed 1.96 standard
// errors over its test examples. NaN where a row of one seed holds no standard error.
inline double half_interval(const Seeds& ok) {
  const double count = static_cast<double>(ok.size()), mean = mean_test(ok);
  if (ok.size() == 1) return 1.96 * ok[0]->accuracy().test_stderr.value_or(std::nan(""));
  double squares = 0;
  for (const Row* row : ok) squares += std::pow(row->accuracy().test - mean, 2);
  return student_t_975(ok.size() - 1) * std::sqrt(squares / (count - 1) / count);
}

// "0.912† ±0.010": the mean over the seeds, its mark, and half of its interval where it is known.
inline std::string mean_text(const Seeds& ok) {
  std::string text =
      fmt::format("{:.3f}{}", mean_test(ok), has_unfinished(ok) ? kUnfinishedSign : "");
  if (const double half = half_interval(ok); std::isfinite(half))
    text += fmt::format(" ±{:.3f}", half);
  return text;
}

// ", 2 not ok" where seeds failed; "" else.
inline std::string failures_text(const Seeds& all, const Seeds& ok) {
  return ok.size() < all.size() ? fmt::format(", {} not ok", all.size() - ok.size()) : "";
}

// NaN where one has none.
inline double mean_lift(const Seeds& rows) {
  double sum = 0;
  for (const Row* row : rows) sum += row->accuracy().lift.value_or(std::nan(""));
  return sum / static_cast<double>(rows.size());
}

}  // namespace attn
