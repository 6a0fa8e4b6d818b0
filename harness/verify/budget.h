// Whether a reference can be evaluated at the length of a pass in the time that comparing may take.
#pragma once

#include "harness/measure/workload.h"

namespace attn {

// Seconds of one evaluation at `positions` positions of each head, from two of a sixteenth and an
// eighth of the length; 0 below 2048 positions, where all take less than measuring does.
double forecast_of_reference(const SeenPass& seen, int64_t positions);

}  // namespace attn
