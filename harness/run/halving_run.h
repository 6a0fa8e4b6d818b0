// A sweep that tunes by halving: rounds of plan/halving.h, one run of the sweeper each, which
// widens one rows file. A search that was ended goes on from its rows.
#pragma once

#include "harness/run/run.h"

namespace attn {

bool has_halving(const Plan& grid);
// As run_sweep(), of every cell of `grid` that is not tuned by halving, of the trials, and of the
// choices with all seeds.
SweepResult run_halving(const SweepRequest& request, const Plan& grid,
                        const std::function<void(const Progress&)>& report);

}  // namespace attn
