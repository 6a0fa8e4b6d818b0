// The options of attnbench run; those that are axes come from the list of axes.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/options.h"
#include "harness/plan/axes.h"

namespace attn::cli {

std::string option_of(const AxisInfo& axis);  // "head-dim" of the axis head_dim
std::vector<Option> run_options();

}  // namespace attn::cli
