// The figures of rows by measure; see row.h.
#include "harness/cell/row.h"

#include <algorithm>

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
const ReachMetrics& Row::reach() const { return metrics_of<ReachMetrics>(*this, "reach"); }

const std::pair<std::string, double>* best_shortcut(const AccuracyMetrics& metrics, bool least) {
  const auto& all = metrics.shortcuts;
  const auto best = std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return least ? a.second > b.second : a.second < b.second;
  });
  return best == all.end() ? nullptr : &*best;
}

std::vector<double> unpacked(const ScoresByExample& packed) {
  ATTN_CHECK(packed.levels == 2 || packed.levels == 16, "by_example.levels: {} is not 2 or 16",
             packed.levels);
  const int64_t in_digit = packed.levels == 2 ? 4 : 1;
  ATTN_CHECK(packed.count >= 0 && packed.count / in_digit <= std::ssize(packed.scores) &&
                 std::ssize(packed.scores) == (packed.count + in_digit - 1) / in_digit,
             "by_example.scores: {} digits are not the scores of {} examples", packed.scores.size(),
             packed.count);
  std::vector<double> scores;
  for (int64_t i = 0; i < packed.count; i++) {
    const char digit = packed.scores[static_cast<size_t>(i / in_digit)];
    const bool is_letter = digit >= 'a' && digit <= 'f';
    ATTN_CHECK(is_letter || (digit >= '0' && digit <= '9'),
               "by_example.scores: '{}' is no hexadecimal digit", digit);
    const int value = is_letter ? digit - 'a' + 10 : digit - '0';
    scores.push_back(packed.levels == 16 ? value / 15.0 : (value >> (3 - i % 4)) & 1);
  }
  return scores;
}

bool RunConfig::asks_the_same(const RunConfig& other) const {
  return profile == other.profile && profile_version == other.profile_version &&
         protocol == other.protocol && sweeps == other.sweeps;
}

}  // namespace attn
