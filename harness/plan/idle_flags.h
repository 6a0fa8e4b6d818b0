// A flag that nothing of a sweep would listen to is an error, not a surprise.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/resolve.h"

namespace attn {

// Error where a flag of the request is of none of the measures. `inputs` are the values that the
// axis input has in this sweep.
void refuse_idle_flags(const SweepRequest& request, const std::vector<Measure>& measures,
                       const std::vector<std::string>& inputs);
// A number of layers is of a model, or of the stack of reach: Error where it is asked for and no
// measure has either.
void refuse_idle_layers(const SweepRequest& request, const std::vector<Resolved>& sweeps);
// And a type of cache where nothing is decoded.
void refuse_idle_cache(const SweepRequest& request, const std::vector<Resolved>& sweeps);

}  // namespace attn
