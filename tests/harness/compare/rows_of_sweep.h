// Rows of made-up and of simulated sweeps for the tests of comparisons.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "harness/cell/row.h"
#include "harness/compare/compare.h"
#include "variants/catalog.h"

namespace attn::rows_of_sweep {

inline Plugin plugin(const std::string& name) {
  return {.name = name, .params = defaults_in_rows(find_variant(name))};
}

inline Row row(Measure measure, const std::string& variant, int64_t length) {
  Row row;
  row.cell = variant + std::to_string(length);
  row.key.measure = measure;
  row.key.variant = plugin(variant);
  row.key.axes.length = length;
  row.key.axes.mode = Mode::forward;
  return row;
}

// Three samples of each visit, at these times.
inline Row speed(const std::string& variant, int64_t length, const std::vector<double>& visits) {
  Row timed = row(Measure::speed, variant, length);
  for (const double visit : visits) {
    for (const double factor : {0.99, 1.0, 1.2}) timed.result.times.push_back(visit * factor);
    timed.result.visits.push_back(3);
  }
  timed.result.metrics = SpeedMetrics{.time = {.median = visits[0]}};
  return timed;
}

inline Row memory(const std::string& variant, int64_t length, int64_t bytes) {
  Row held = row(Measure::memory, variant, length);
  held.result.metrics = MemoryMetrics{.peak_bytes = bytes};
  return held;
}

inline Row fidelity(double relative_error) {
  Row far = row(Measure::fidelity, "linear", 64);
  far.result.metrics = FidelityMetrics{.relative_error = relative_error, .cosine = 1};
  return far;
}

inline Row reach(int64_t past, int64_t future) {
  Row far = row(Measure::reach, "linear", 64);
  far.result.metrics = ReachMetrics{.perturbation = {.past = past, .future = future}};
  return far;
}

inline Row accuracy(double test, int64_t seed, const std::string& metric = "accuracy") {
  Row scored = row(Measure::accuracy, "linear", 64);
  scored.key.task = Plugin{.name = "mqar", .params = {}};
  scored.key.training = Params::unchecked({{"steps", int64_t{100}}});
  scored.key.axes.seed = seed;
  scored.result.metrics = AccuracyMetrics{.metric = metric, .test = test};
  return scored;
}

// `scores`: the bits of four examples a digit.
inline Row scored_examples(int64_t count, const std::string& scores, int64_t levels = 2,
                           const std::string& digest = "00000000000000aa") {
  Row scored = accuracy(0, 0);
  auto& metrics = std::get<AccuracyMetrics>(scored.result.metrics);
  metrics.by_example =
      ScoresByExample{.count = count, .levels = levels, .digest = digest, .scores = scores};
  double sum = 0;
  for (const double score : unpacked(*metrics.by_example)) sum += score;
  metrics.test = sum / static_cast<double>(count);
  return scored;
}

inline RowsFile file(std::vector<Row> rows, const std::string& cpu = "A",
                     const std::string& flags = "-O3") {
  RowsFile made{.path = cpu + flags + ".jsonl", .rows = std::move(rows)};
  made.run.environment = {{"cpu_model", cpu}, {"flags", flags}, {"commit", cpu + flags}};
  return made;
}

}  // namespace attn::rows_of_sweep

// Speed rows of simulated sweeps: three visits of three samples each. Visits scatter as a lognormal
// or with outliers, samples are skewed.

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
