// Answers of served sequences beside what they must equal.
#pragma once

#include "harness/measure/serving.h"
#include "harness/verify/verify.h"

namespace attn {

// Of the last round of `serving`, which must have run to its end: of each group a few sequences,
// their answers of the first call and of the last. Beside the reference; where that takes longer
// than `budget_s` allows, beside a causal forward pass over all positions, and a prompt's first
// positions beside the reference. Throws WrongAnswer.
Verified verify_served(const Serving& serving, double budget_s);

}  // namespace attn
