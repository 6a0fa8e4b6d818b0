// Inputs for the fidelity measurement: random inputs, or inputs with one planted key per query.
#pragma once

#include "harness/measure/fidelity.h"

namespace attn {

// random: q, k ~ N(0, scale²), v ~ N(0, 1).
// needle: keys are random directions of norm scale·√head_dim. Query i is parallel to one key, the
// needle, whose place is uniform among the visible places. The norm of the query makes the logit of
// the needle scale²·T, where T = ln(9·max(1, others)) / max(0.05, 1 - c) and c is the largest
// cosine between the needle and another visible key. At scale 1 every other logit is below T -
// ln(9·others), unless c > 0.95. Exact attention then gives the needle at least 0.9 of the weight.
FidelityInputs fidelity_inputs(const WorkloadSpec& spec, InputKind kind, double scale);

// The place of the needle of each query in fidelity_inputs(), [batch·heads·length].
std::vector<int64_t> needle_places(const WorkloadSpec& spec);

}  // namespace attn
