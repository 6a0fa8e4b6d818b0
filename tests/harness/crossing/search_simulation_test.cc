// Simulated searches: how often the interval of a crossing holds the true length, and how many
// lengths a search measures. Visits scatter as a lognormal or with outliers, samples are skewed,
// and times go up and down from length to length as with tiles.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include <fmt/core.h>

#include "core/base/rng.h"
#include "harness/compare/times.h"
#include "harness/crossing/search.h"

namespace attn::search_simulation_test {
namespace {

struct Noise {
  double least = 0.01, most = 0.01;  // deviation of visits; each search draws one between them
  bool outliers = false;             // one visit in seven is slow by far more
  double tiles = 0;                  // deviation of a length's time from the smooth law
  double in_visit = 0.01;
};

double skewed(double scale, Rng& random) { return scale * -std::log(1 - random.uniform()); }

Row timed(double seconds, double deviation, const Noise& noise, Rng& random) {
  Row row;
  row.key.measure = Measure::speed;
  SpeedMetrics metrics;
  metrics.time.median = seconds;
  row.result.metrics = metrics;
  for (int visit = 0; visit < 3; visit++) {
    double level = std::log(seconds) + deviation * random.normal();
    if (noise.outliers && random.uniform() < 0.15) level += skewed(5 * deviation, random);
    for (int sample = 0; sample < 3; sample++)
      row.result.times.push_back(std::exp(level + skewed(noise.in_visit, random)));
    row.result.visits.push_back(3);
  }
  return row;
}

// A constant and a linear part against a power of length with a linear part.
struct Truth {
  double crossing = 0, fixed = 0, linear = 0, power = 2, rival_linear = 0;
  double variant(double n) const { return linear * (fixed + n); }
  double rival(double n) const {
    const auto shape = [&](double at) {
      return std::pow(at / crossing, power) + rival_linear * at / crossing;
    };
    return variant(crossing) * shape(n) / shape(crossing);
  }
};

struct Found {
  double covered = 0;  // in percent of the crossings that were found
  double found = 0;    // in percent of the searches
  double narrow = 0;   // likewise
  double lengths = 0;  // that a search measured, mean
  double steps = 0;
};

Found simulate(const Noise& noise, double power = 2) {
  constexpr int kSearches = 2000;
  Rng random = rng(20261123, "crossings");
  int found = 0, narrow = 0, covered = 0;
  double lengths = 0, all_steps = 0;
  for (int n = 0; n < kSearches; n++) {
    const auto between = [&](double low, double high) {
      return low * std::pow(high / low, random.uniform());
    };
    const double crossing = between(100, 5000);
    const Truth truth{crossing, crossing * random.uniform(), between(1e-8, 1e-6), power,
                      0.5 * random.uniform()};
    const double deviation = between(noise.least, noise.most);
    Curve curve{.low = 64, .high = 8192, .points = {}, .unusable = {}};
    std::vector<Row> rows;  // of the variant and of its rival in turn
    std::vector<int64_t> measured;
    SearchState state = search_step(curve);
    int steps = 0;
    while (!state.next.empty()) {
      steps++;
      for (const int64_t length : state.next) {
        measured.push_back(length);
        const auto at = static_cast<double>(length);
        for (const double seconds : {truth.variant(at), truth.rival(at)})
          rows.push_back(
              timed(seconds * std::exp(noise.tiles * random.normal()), deviation, noise, random));
      }
      std::vector<const Row*> all;
      for (const Row& row : rows) all.push_back(&row);
      const std::vector<LogTime> times = log_times(all);
      curve.points.clear();
      for (size_t i = 0; i < measured.size(); i++)
        curve.points.push_back(
            {measured[i], change_of({times[2 * i]}, {times[2 * i + 1]}).value()});
      state = search_step(curve);
    }
    all_steps += steps;
    lengths += static_cast<double>(measured.size());
    if (state.crossings.size() != 1 || !state.crossings[0].is_found) continue;
    const Crossing& seen = state.crossings[0];
    found++;
    narrow += seen.is_narrow;
    covered += seen.low <= crossing && crossing <= seen.high;
  }
  Found result{100.0 * covered / found, 100.0 * found / kSearches, 100.0 * narrow / kSearches,
               lengths / kSearches, all_steps / kSearches};
  for (const auto& [name, value] : {std::pair("covered", result.covered),
                                    {"found", result.found},
                                    {"narrow", result.narrow},
                                    {"lengths", result.lengths},
                                    {"steps", result.steps}})
    ::testing::Test::RecordProperty(name, fmt::format("{:.1f}", value));
  return result;
}

// A grid of the same precision has a length every 10 %.
const double kGrid = std::log(8192.0 / 64) / std::log(1.1) + 1;

// Of 2000 searches the standard error of a share of 5 % is 0.5 percentage points. With outliers
// Student's t is too careful.
void expect_sound(const Noise& noise, double power = 2) {
  const Found result = simulate(noise, power);
  EXPECT_GE(result.covered, 93);
  EXPECT_LE(result.covered, noise.outliers ? 98 : 97);
  EXPECT_GE(result.found, power == 2 ? 98 : 95);
  EXPECT_LE(result.lengths, kGrid / 3);
}

TEST(SearchSimulation, QuietVisits) { expect_sound({.least = 0.002, .most = 0.002}); }
TEST(SearchSimulation, UsualVisits) { expect_sound({.least = 0.01, .most = 0.01}); }
TEST(SearchSimulation, BusyVisits) { expect_sound({.least = 0.06, .most = 0.06}); }
TEST(SearchSimulation, VisitsOfAllKinds) { expect_sound({.least = 0.002, .most = 0.06}); }
TEST(SearchSimulation, VisitsWithOutliers) {
  expect_sound({.least = 0.01, .most = 0.01, .outliers = true});
}
TEST(SearchSimulation, OutliersOfAllKinds) {
  expect_sound({.least = 0.002, .most = 0.06, .outliers = true});
}
TEST(SearchSimulation, EdgesOfTiles) {
  expect_sound({.least = 0.01, .most = 0.01, .tiles = 0.005});
  expect_sound({.least = 0.002, .most = 0.06, .tiles = 0.01});
}
TEST(SearchSimulation, RatiosThatAreFlatter) { expect_sound({.least = 0.002, .most = 0.06}, 1.5); }

TEST(SearchSimulation, IntervalsAreNarrowWithAFifthOfTheGrid) {
  const Found result = simulate({.least = 0.002, .most = 0.06});
  EXPECT_GE(result.narrow, 98);
  EXPECT_LE(result.lengths, kGrid / 5);
}

}  // namespace
}  // namespace attn::search_simulation_test
