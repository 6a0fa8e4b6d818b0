// The results of contract checks as texts that a failed test prints and compares.
#pragma once

#include <fmt/core.h>

#include <string>
#include <vector>

#include "harness/check/result.h"

namespace attn {

inline std::string lines(const std::vector<attn_check::Result>& results) {
  std::string all;
  for (const attn_check::Result& r : results)
    all += fmt::format("{} {}: {}\n", r.subject, r.name, r.detail);
  return all;
}

inline std::vector<std::string> red(const std::vector<attn_check::Result>& results) {
  std::vector<std::string> names;
  for (const attn_check::Result& result : results)
    if (result.outcome == attn_check::Outcome::failed) names.push_back(result.name);
  return names;
}

}  // namespace attn
