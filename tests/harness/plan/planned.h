// What the tests of plans ask for, and what plans say.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "harness/plan/plan.h"
#include "tests/said.h"

namespace attn {

// No variants: every one.
inline SweepRequest request_with(std::map<std::string, std::string> axes,
                                 std::vector<std::string> variants = {}) {
  SweepRequest request;
  request.axes = std::move(axes);
  request.variants = std::move(variants);
  return request;
}

inline std::set<std::string> ids(const SweepRequest& request) {
  std::set<std::string> found;
  for (const Cell& cell : plan(request).cells) found.insert(cell.id);
  return found;
}

inline std::string error_of(const SweepRequest& request) {
  return fault_of([&] { plan(request); });
}

}  // namespace attn
