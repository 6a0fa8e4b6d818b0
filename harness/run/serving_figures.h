// From the times of calls to what those who wait for tokens see.
#pragma once

#include <vector>

#include "harness/cell/metrics.h"
#include "harness/measure/mixed_batch.h"

namespace attn {

// `first_s` holds the first call of each round, `later_s` the others, round by round. Quantiles are
// by nearest rank, each token counted once. Error where the rounds are not of one number of calls.
ServingFigures serving_figures(const MixedBatch& batch, const std::vector<double>& first_s,
                               const std::vector<double>& later_s);

// The queue of requests at the server of this batch. `calls` are those of each visit, of which the
// medians count. Error where the visits measured other calls.
QueueFigures queue_figures(const MixedBatch& batch,
                           const std::vector<std::vector<ServedCall>>& calls, double rate,
                           uint64_t seed);

}  // namespace attn
