// What a workload costs by formula, beside the cost of its attention: projections, feed-forward,
// the model's ends, and keys and values that are repeated.
#pragma once

#include "harness/measure/workload.h"

namespace attn {

// What a pass adds to the cost of a variant that takes as many heads of keys as of queries: it
// reads the fewer heads and writes and holds a copy for every query head. Keys that the variant
// does not read are not repeated.
void add_repeats(const WorkloadSpec& spec, Cost& cost);

int64_t layers_of(const WorkloadSpec& spec);            // 1 but at scope model
int64_t hidden_width(const WorkloadSpec& spec);         // of the feed-forward
double layers_dense_flops(const WorkloadSpec& spec);    // of all layers
double ends_flops(const WorkloadSpec& spec);            // of the model's linear input and head
VariantInfo::Reads reads_of(const WorkloadSpec& spec);  // of the variant with these parameters

inline constexpr int64_t kWorkloadClasses = 10;   // of the model
inline constexpr int64_t kFeedForwardFactor = 4;  // of the width: Vaswani et al. 2017, section 3.3

}  // namespace attn
