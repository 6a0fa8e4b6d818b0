// The axis `workload`: what its word decides, and what does not go with it.
#pragma once

#include <array>
#include <vector>

#include "harness/cell/key.h"
#include "harness/plan/grammar.h"
#include "harness/plan/plan.h"

namespace attn {

// The axes that a workload's word decides, or rules out.
inline constexpr std::array kDecidedByWorkload = {"length", "batch", "mode",  "scope",
                                                  "layers", "equal", "causal"};

// Where `axes` hold workloads: each by its shortest word, and without the axes that a word decides.
// Error where a word is none, or where the request asks for what a word decides or rules out.
void settle_workloads(const SweepRequest& request, std::vector<Setting>& axes);

// Length, batch, mode, scope and causal as the workload has them; nothing where there is none.
void decide_by_workload(Axes& axes);

}  // namespace attn
