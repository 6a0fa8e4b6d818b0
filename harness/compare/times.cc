// Logarithms of times, their variances between visits, and differences of them; see times.h.
#include "harness/compare/times.h"

#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "harness/measure/statistics.h"

namespace attn {
namespace {

// The mean of the visits, and the variance of one visit.
LogTime own_time(const Row& row) {
  const CellResult& result = row.result;
  LogTime time;
  if (result.visits.size() <= 1) {
    ATTN_CHECK(row.speed().time.median > 0, "cell {}: a time of {}", row.cell,
               row.speed().time.median);
    time.mean = std::log(row.speed().time.median);
    return time;
  }
  std::vector<double> logs;
  try {
    logs = log_medians(result.times, result.visits);
  } catch (const Error& error) {
    throw_error(fmt::format("cell {}: {}", row.cell, error.what()));
  }
  const auto count = static_cast<double>(logs.size());
  for (const double log : logs) time.mean += log / count;
  for (const double log : logs) time.of_mean.value += std::pow(log - time.mean, 2) / (count - 1);
  time.of_mean.degrees = count - 1;
  return time;
}

}  // namespace

std::vector<LogTime> log_times(const std::vector<const Row*>& rows) {
  std::vector<LogTime> times;
  std::vector<Variance> own;
  for (const Row* row : rows) {
    times.push_back(own_time(*row));
    if (times.back().of_mean.degrees > 0) own.push_back(times.back().of_mean);
  }
  const std::vector<Variance> steady = steadied(own);
  auto next = steady.begin();
  for (size_t i = 0; i < rows.size(); i++) {
    Variance& variance = times[i].of_mean;
    if (!(variance.degrees > 0)) continue;
    variance = *next++;
    variance.value /= static_cast<double>(rows[i]->result.visits.size());
  }
  return times;
}

// Degrees of freedom by Satterthwaite (1946).
std::optional<Change> change_of(const std::vector<LogTime>& added,
                                const std::vector<LogTime>& taken) {
  Change change;
  double variance = 0, weighed = 0;
  const auto add = [&](const std::vector<LogTime>& times, double sign) {
    for (const LogTime& time : times) {
      if (!(time.of_mean.degrees > 0)) return false;
      change.value += sign * time.mean;
      variance += time.of_mean.value;
      weighed += time.of_mean.value * time.of_mean.value / time.of_mean.degrees;
    }
    return true;
  };
  if (!add(added, 1) || !add(taken, -1)) return std::nullopt;
  change.error = std::sqrt(variance);
  change.degrees =
      weighed > 0 ? variance * variance / weighed : std::numeric_limits<double>::infinity();
  return change;
}

}  // namespace attn
