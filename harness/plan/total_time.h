// What the cells of a plan take together, of which some are measured side by side.
#pragma once

#include "harness/plan/plan.h"

namespace attn {

// What a cell adds to the time of the whole sweep: accuracy and fidelity cells go `jobs` at a time.
double share_of(const Cell& cell, int jobs);
// Of all cells; no less than the longest of them, which no further job shortens.
double forecast_total(const SweepRequest& request, const Plan& plan);
int jobs_of(const SweepRequest& request);  // as asked, else one per core

}  // namespace attn
