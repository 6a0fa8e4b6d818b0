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

// A training whose learned weights are scored with other parameters too.
inline SweepRequest scored(const std::string& test_with, const std::string& variant = "full",
                           const std::string& task = "mqar[preset=small]",
                           const std::string& training = "") {
  SweepRequest request = request_with({{"measure", "accuracy"}}, {variant});
  request.tasks = {task};
  request.training = training;
  request.test_with = test_with;
  return request;
}

// What the first cell is scored with too, and on.
inline std::vector<std::string> texts_of(const std::vector<Params>& all) {
  std::vector<std::string> found;
  for (const Params& params : all) found.push_back(params.str());
  return found;
}
inline std::vector<std::string> texts_with(const SweepRequest& request) {
  const Cell cell = plan(request).cells.at(0);
  return texts_of(cell.key.test_with);
}
inline std::vector<std::string> texts_on(const SweepRequest& request) {
  const Cell cell = plan(request).cells.at(0);
  return texts_of(cell.key.test_on);
}

inline std::string error_of(const SweepRequest& request) {
  return fault_of([&] { plan(request); });
}

}  // namespace attn
