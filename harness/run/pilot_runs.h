// Measures the pilots (harness/plan/pilots.h) that the forecasts of a plan lack.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "harness/plan/plan.h"

namespace attn {

using PilotReport = std::function<void(const std::string& line)>;  // gets a line before each

// Measures, `jobs` at a time, the pilots that the plan's accuracy cells lack, keeps them in
// request.pilots and forecasts the plan anew. A pilot that fails leaves the formula's forecast.
// Returns SIGINT or SIGTERM when interrupted, else 0.
int run_pilots(const SweepRequest& request, Plan& plan, const PilotReport& report);

// The same of one training for each of the tasks that take most of the time and have no pilot yet,
// so that the other trainings are forecast at the pace of this machine; of nothing where all
// trainings take less than a minute. Cells whose id is in `held` count for nothing.
int run_few_pilots(const SweepRequest& request, Plan& plan, const std::set<std::string>& held,
                   const PilotReport& report);

}  // namespace attn
