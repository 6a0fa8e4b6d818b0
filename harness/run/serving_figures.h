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

}  // namespace attn
