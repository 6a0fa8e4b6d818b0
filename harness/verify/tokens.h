// Decoded tokens beside what they must equal.
#pragma once

#include "harness/measure/verified.h"
#include "harness/verify/outputs.h"

namespace attn {

struct ComparedTokens {
  ComparedRows compared;
  VerifiedBy by = VerifiedBy::reference;
};

// The first token that `workload` decoded and, if `all`, the second, and the last one where the
// state does not hold those before it: beside the reference, or, unless `by_reference`, beside the
// last row of a causal forward pass of the same positions (identity "forward").
ComparedTokens compare_tokens(Workload& workload, bool all, bool by_reference);

}  // namespace attn
