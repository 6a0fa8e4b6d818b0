// Whether a reference can be evaluated at the length of a pass in the time that comparing may take.
#pragma once

#include "harness/measure/workload.h"

namespace attn {

// Positions of a causal pass that are compared with the reference of these alone, where that of all
// takes too long: the longest that the contract checks compare whole.
constexpr int64_t kFirstPiece = 1025;
constexpr double kJudgingSeconds = 60;  // that a reference may take where identities are in doubt

// Seconds of one evaluation at `positions` positions of each head, from two of a sixteenth and an
// eighth of the length; 0 below 2048 positions, where all take less than measuring does.
double forecast_of_reference(const SeenPass& seen, int64_t positions);

// Seconds of one causal forward pass over all positions, from two of a sixteenth and an eighth of
// them.
double forecast_of_forward(const SeenPass& seen);

}  // namespace attn
