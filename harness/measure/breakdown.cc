// Pairs of a pass with marks and one without, in alternating order, so that a machine that slows
// down does so for both; see breakdown.h. Passes shorter than a millisecond are repeated.
#include "harness/measure/breakdown.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/base/marks.h"

namespace attn {
namespace {

constexpr double kLeastSample_s = 1e-3;
constexpr double kAll_s = 0.2;  // of all pairs
constexpr int64_t kFewestPairs = 2, kMostPairs = 50;

double plain_seconds(Workload& workload, int64_t repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < repeats; ++i) workload.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

PartTimes marked_times(Workload& workload, int64_t repeats) {
  return time_parts([&] {
    for (int64_t i = 0; i < repeats; ++i) workload.run();
  });
}

}  // namespace

MarkedPasses& operator+=(MarkedPasses& all, const MarkedPasses& more) {
  all.marked_s.insert(all.marked_s.end(), more.marked_s.begin(), more.marked_s.end());
  all.plain_s.insert(all.plain_s.end(), more.plain_s.begin(), more.plain_s.end());
  for (const auto& [part, seconds] : more.part_s) all.part_s[part] += seconds;
  all.passes += more.passes;
  all.marks += more.marks;
  return all;
}

MarkedPasses measure_parts(Workload& workload) {
  marked_times(workload, 1);  // what is made on first use
  const double pass_s = std::max(1e-9, plain_seconds(workload, 1));
  const auto repeats = static_cast<int64_t>(std::ceil(std::max(1.0, kLeastSample_s / pass_s)));
  const double pair_s = 2 * pass_s * static_cast<double>(repeats);
  const auto pairs =
      static_cast<int64_t>(std::clamp(kAll_s / pair_s, double(kFewestPairs), double(kMostPairs)));
  MarkedPasses found;
  const auto count = static_cast<double>(repeats);
  for (int64_t i = 0; i < pairs; ++i) {
    if (i % 2) found.plain_s.push_back(plain_seconds(workload, repeats) / count);
    const PartTimes times = marked_times(workload, repeats);
    if (i % 2 == 0) found.plain_s.push_back(plain_seconds(workload, repeats) / count);
    found.marked_s.push_back(times.pass_s / count);
    for (const auto& [part, name] : names_of(Part{}))
      if (times.of(part) > 0) found.part_s[name] += times.of(part);
    found.passes += repeats;
    found.marks += times.marks;
  }
  return found;
}

}  // namespace attn
