// See unlearned.h.
#include "harness/plan/unlearned.h"

#include <algorithm>

#include "tasks/api/task.h"

namespace attn {

double unlearned_score(const AccuracyMetrics& metrics) {
  const bool error = is_error(metrics.metric);
  const auto* const shortcut = best_shortcut(metrics, error);
  if (!shortcut) return metrics.chance;
  return error ? std::min(metrics.chance, shortcut->second)
               : std::max(metrics.chance, shortcut->second);
}

double score_on_the_way(const AccuracyMetrics& metrics, double share) {
  const double from = unlearned_score(metrics);
  if (metrics.metric == "bits_per_token") return from;
  const double perfect = is_error(metrics.metric) ? 0 : 1;
  return from + share * (perfect - from);
}

}  // namespace attn
