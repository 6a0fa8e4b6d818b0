// The figures of rows by measure; see row.h.
#include "harness/cell/row.h"

#include "core/base/check.h"

namespace attn {
namespace {

template <class T>
const T& metrics_of(const Row& row, const char* measure) {
  const T* const metrics = std::get_if<T>(&row.result.metrics);
  ATTN_CHECK(metrics, "cell {} holds no figures of {}", row.cell, measure);
  return *metrics;
}

}  // namespace

const SpeedMetrics& Row::speed() const { return metrics_of<SpeedMetrics>(*this, "speed"); }
const MemoryMetrics& Row::memory() const { return metrics_of<MemoryMetrics>(*this, "memory"); }
const AccuracyMetrics& Row::accuracy() const {
  return metrics_of<AccuracyMetrics>(*this, "accuracy");
}
const FidelityMetrics& Row::fidelity() const {
  return metrics_of<FidelityMetrics>(*this, "fidelity");
}

bool RunConfig::asks_the_same(const RunConfig& other) const {
  return profile == other.profile && profile_version == other.profile_version &&
         protocol == other.protocol && sweeps == other.sweeps;
}

}  // namespace attn
