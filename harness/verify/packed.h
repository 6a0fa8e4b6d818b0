// Answers and gradients of packed sequences beside those of each sequence alone.
#pragma once

#include "harness/measure/packed_pass.h"
#include "harness/verify/verify.h"

namespace attn {

// Of the last run() of `pass`. Outputs of every sequence: beside the reference of that sequence
// alone, from the longest and the shortest on, as long as `budget_s` lasts; of others beside a
// forward pass of that sequence alone, with the first positions of a causal one beside the
// reference of these, and with identities of the longest. After run_both(), the padded pass beside
// the packed one: outputs, and in mode train all gradients. Gradients of the packed one, in mode
// train, if `whole`: all of them beside those of each sequence alone, and those of a few beside
// differences of the reference. Throws WrongAnswer.
Verified verify_packed(const PackedPass& pass, const VerifyOptions& options = {});

}  // namespace attn
