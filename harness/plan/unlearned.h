// What a task is scored by without having learned it.
#pragma once

#include "harness/cell/metrics.h"

namespace attn {

// The score of the best shortcut, or of chance where that is better.
double unlearned_score(const AccuracyMetrics& metrics);
// The score at `share` of the way from there to a perfect one. Of bits nobody knows a perfect
// score: that of the best shortcut.
double score_on_the_way(const AccuracyMetrics& metrics, double share);

}  // namespace attn
