// When a speed cell has been visited often enough: after a number of visits, or when its interval
// is as narrow as was asked. A header of its own, because it can change a figure: it is hashed into
// the cells' ids.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/cell/names.h"
#include "harness/measure/statistics.h"

namespace attn {

inline constexpr int64_t kFirstLook = 6;  // visits before the interval is first looked at
inline constexpr int64_t kMostVisits = 200;
// Twice the visits give an interval of 0.7 of the width.
inline constexpr double kNearlyNarrow = 1.2;

// Ends the visits of one cell. With a precision, the interval is looked at after each visit from
// the sixth on. The first narrow interval is often narrow by luck, and the true value lies outside
// of it too often. So when the interval is nearly as narrow as asked, as many visits again must
// confirm it: simulated, 93 to 96 % of the intervals then hold the true value.
class Stopping {
 public:
  // `precision`: half the width of the interval over the median; 0: `rounds` visits are enough.
  // `max_time_s` bounds what the visits of the cell take; 0: no bound.
  Stopping(int64_t rounds, double precision, double max_time_s)
      : rounds_(rounds), precision_(precision), max_time_s_(max_time_s) {}
  // Why to stop after these visits, which took `seconds`; nullopt: another visit.
  std::optional<VisitsEnd> after(const Summary& time, int64_t visits, double seconds);

 private:
  const int64_t rounds_;
  const double precision_, max_time_s_;
  int64_t confirmed_at_ = 0;  // visits after which a narrow interval counts; 0: none was seen
};

// Half the width of the interval over the median.
double relative_reach(const Summary& time);

}  // namespace attn
