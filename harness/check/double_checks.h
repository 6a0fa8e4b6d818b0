// The bridge from the float program to the double build of the checks: gradients and all that
// rounding blurs, of a catalogued variant. Compiled in the double build only;
// no_double_checks.cc stands in where there is none.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "harness/check/result.h"

namespace attn_check {

bool checks_in_double();  // false in builds without the double twins (ATTN_F64=OFF)

// `params` values have the type attn::ParamValue, which is the same std::variant in both builds.
std::vector<Result> check_in_double(
    const std::string& variant,
    const std::map<std::string, std::variant<int64_t, double, bool, std::string>>& params,
    Level level, const std::string& only = "");

}  // namespace attn_check
