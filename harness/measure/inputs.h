// Inputs on which a variant's distance from exact attention is measured, at random or with a
// planted needle for every query.
#pragma once

#include "harness/measure/fidelity.h"

namespace attn {

struct FidelityInputs {
  Tensor q, k, v;  // [batch, heads, length, head_dim]
};

// random: q, k ~ N(0, scale²), v ~ N(0, 1).
// needle: keys are random directions of norm scale·√head_dim; query i points along the key at a
// place drawn uniformly from those it may see, with the norm that makes the planted logit scale²·T,
// where T = ln(9·max(1, others)) / max(0.05, 1 - c) and c is the largest cosine between the planted
// key and another visible one. At scale 1 every other logit is then below T - ln(9·others) (unless
// c > 0.95: such keys share the weight), so exact attention puts at least 0.9 of its weight on the
// needle.
FidelityInputs fidelity_inputs(const WorkloadSpec& spec, InputKind kind, double scale);

// The place of each query's needle, [batch·heads·length], as fidelity_inputs draws it.
std::vector<int64_t> needle_places(const WorkloadSpec& spec);

}  // namespace attn
