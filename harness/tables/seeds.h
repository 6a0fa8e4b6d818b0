// The cells of one variant on one task that differ in nothing but their seed, and means over them.
// Private to the tables.
#pragma once

#include <cmath>
#include <vector>

#include "harness/tables/grid.h"

namespace attn {

using Seeds = std::vector<const Json*>;

inline Seeds ok_ones(const Seeds& rows) {
  Seeds ok;
  for (const Json* row : rows)
    if (status_of(*row) == "ok") ok.push_back(row);
  return ok;
}

// NaN where the metric is null.
inline double metric(const Json& row, const char* name) {
  const Json& value = row.at("metrics").at(name);
  return value.is_number() ? value.get<double>() : std::nan("");
}

// Of rows whose status is "ok".
inline double mean_of(const Seeds& rows, const char* name) {
  double sum = 0;
  for (const Json* row : rows) sum += metric(*row, name);
  return sum / static_cast<double>(rows.size());
}

}  // namespace attn
