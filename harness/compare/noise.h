// A/A: one program measured twice. What the two differ by is noise, so it shows the smallest
// difference that the machine can tell from none, and whether intervals hold what they claim.
// docs/method.md states the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cell/noise_floor.h"
#include "harness/compare/row_pairs.h"

namespace attn {

// Some pairs of speed cells, each of one cell measured twice.
struct NoiseOf {
  std::optional<Mode> mode;  // nullopt: all pairs together
  int64_t threads = 0, length = 0;
  int64_t pairs = 0;
  double scatter = 0;  // standard deviation of a visit over its time: the median of the pairs
  // Of two cells with three visits each, the difference (1: as long as the time itself) that a test
  // at 5 % finds in 80 of 100 cases. In pair i a difference d is found with the probability
  // P(T > t - log(1 + d) / s), T Student's t with the pair's degrees of freedom, t its 97.5 %
  // quantile, and s the standard error of the difference of two means of three visits; `detectable`
  // is the d at which the mean of that over the pairs is 0.8. For pairs that are alike, log(1 + d)
  // is (t_0.975 + t_0.80) s (Cohen 1988, chapter 2, with Student's t for the normal distribution).
  double detectable = 0;
  double largest = 0;                  // difference of a pair
  int64_t held = 0;                    // intervals of 95 % that hold "no difference"
  double held_low = 0, held_high = 0;  // 95 % interval of that share (Wilson 1927)
  // Differences that the test of `compare` finds at the threshold 0, corrected by Holm's method
  // over all pairs. Pairs that are marked as noisy count too.
  int64_t raised = 0;
  bool holds_as_claimed() const;  // whether 95 % lies in [held_low, held_high]
};

struct NoiseReport {
  std::vector<NoiseOf> groups;  // by mode, threads and length
  NoiseOf all;
  int64_t disturbed = 0;  // pairs with a row that is marked as noisy
  int64_t single = 0;     // cells in one of the files alone
  std::vector<LeftOut> left_out;
  std::string measured_at, commit;
};

// Error where the files are of two machines or builds, or of one run. Without pairs, `groups` is
// empty.
NoiseReport noise_of(const RowsFile& one, const RowsFile& other);

// What is kept with the machine: groups of at least kLeastPairs pairs.
inline constexpr int64_t kLeastPairs = 3;  // fewer say more of chance than of the machine
NoiseFloor floors_of(const NoiseReport& report);

// The 95 % interval of a share, of which `count` of `total` > 0 were seen.
struct ShareInterval {
  double low = 0, high = 0;
};
ShareInterval wilson(int64_t count, int64_t total);

}  // namespace attn
