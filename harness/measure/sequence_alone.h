// One of the sequences of a packed pass by itself. Private to harness/measure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/measure/workload.h"

namespace attn {

// Forward and backward passes of copies of `inputs`, called `names`, in an attention that others
// use too, whose weights' gradients they change. The first one has run.
std::unique_ptr<GradientPass> sequence_alone(WorkloadSpec spec, const Attention& attention,
                                             const std::vector<Tensor>& inputs,
                                             std::vector<std::string> names, Tensor seed);

}  // namespace attn
