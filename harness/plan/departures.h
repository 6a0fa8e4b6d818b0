// In what a sweep departs from the protocol (harness/run/protocol.h): the settings whose values are
// neither those of its profile nor, where there is no profile, the defaults.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/plan.h"

namespace attn {

// Names, such as "length", "training.steps", "timeout"; empty: in nothing. Which variants, tasks
// and measures there are is no departure, and without a profile no shape is one: a row names all of
// these. Fewer values than the profile's are none either: their cells are the profile's own.
std::vector<std::string> departures(const SweepRequest& request);

}  // namespace attn
