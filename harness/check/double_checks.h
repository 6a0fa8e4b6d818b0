// Calls the double build of the checks from the float program, for gradients and other checks that
// need precision, of variants of the catalogue. Only the double build defines these functions; in a
// build without it, no_double_checks.cc does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "harness/check/result.h"

namespace attn_check {

bool checks_in_double();  // false in builds without the double twins (ATTN_F64=OFF)

// The values of `params` have the type of attn::ParamValue, which is the same in both builds.
std::vector<Result> check_in_double(
    const std::string& variant,
    const std::map<std::string, std::variant<int64_t, double, bool, std::string>>& params,
    Level level, const std::string& only = "");

}  // namespace attn_check
