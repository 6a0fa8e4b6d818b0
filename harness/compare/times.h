// Changes of times: Welch's interval (Welch 1947) on the logarithms of the visits' medians.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cell/row.h"
#include "harness/compare/change.h"
#include "harness/compare/variances.h"

namespace attn {

// A time as the mean of the logarithms of its visits' medians.
struct LogTime {
  double mean = 0;
  Variance of_mean;  // no degrees: a single visit
};
// Of speed rows that are ok, the rows of one file. Error, with the cell, where visits do not fit
// the samples.
std::vector<LogTime> log_times(const std::vector<const Row*>& rows);

// The sum of `added` less that of `taken`; nullopt where one is of a single visit.
std::optional<Change> change_of(const std::vector<LogTime>& added,
                                const std::vector<LogTime>& taken);

}  // namespace attn
