// Speed rows of simulated sweeps: three visits of three samples each. Visits scatter as a lognormal
// or with outliers, samples are skewed.
#pragma once

#include <cmath>
#include <cstddef>

#include "core/base/rng.h"
#include "harness/cell/row.h"

namespace attn::simulated_sweep {

using Deviation = double (*)(size_t cell);  // of a cell's visits

inline double equal(size_t) { return 0.01; }
inline double two_kinds(size_t cell) { return cell % 2 ? 0.003 : 0.05; }
inline double all_kinds(size_t cell) {
  return 0.002 * std::pow(50.0, static_cast<double>(cell % 13) / 12);
}

struct Sweep {
  Deviation deviation = equal;
  bool outliers = false;  // one visit in seven is slow by far more than the others scatter
  size_t cells = 60;
  double planted = 0;      // logarithm of the change of the first cell
  double in_visit = 0.01;  // scale of the noise of samples
};

inline double skewed(double scale, Rng& random) { return scale * -std::log(1 - random.uniform()); }

inline Row timed(const Sweep& sweep, size_t cell, double shift, Rng& random) {
  Row row;
  row.key.measure = Measure::speed;
  SpeedMetrics metrics;
  metrics.time.median = 1;
  row.result.metrics = metrics;
  const double deviation = sweep.deviation(cell);
  for (int visit = 0; visit < 3; visit++) {
    double level = shift + deviation * random.normal();
    if (sweep.outliers && random.uniform() < 0.15) level += skewed(5 * deviation, random);
    for (int sample = 0; sample < 3; sample++)
      row.result.times.push_back(std::exp(level + skewed(sweep.in_visit, random)));
    row.result.visits.push_back(3);
  }
  return row;
}

}  // namespace attn::simulated_sweep
