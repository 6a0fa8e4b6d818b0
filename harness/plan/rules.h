// What a sweep file says of combinations: axes that go in step (`zip`), and conditions on cells
// (`include`, `exclude`).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/cell/names.h"
#include "harness/plan/axes.h"
#include "harness/plan/grammar.h"

namespace attn {

// One value of an axis, or a bound: ">4096", "<=64", "!=1024".
struct AxisComparison {
  std::string how;  // "=", "!=", "<", "<=", ">" or ">="
  ParamValue value;
};

// A cell fits where each entry that is not empty fits. Of an entry, one element must fit.
struct Condition {
  std::vector<Measure> measures;
  std::vector<Spec> variants, tasks;  // a parameter that is not named may have any value
  std::vector<std::pair<std::string, std::vector<AxisComparison>>> axes;
  std::vector<Setting> training;
};

struct Rules {
  std::vector<std::vector<std::string>> zips;  // of each, the names of at least two axes
  std::vector<Condition> include, exclude;     // one must fit, if there are any; none may fit
};

// "64:512:*2" or ">512" as comparisons, checked against the axis's type and range.
std::vector<AxisComparison> comparisons_of(const AxisInfo& axis, std::string_view text);

// Whether the value is one that a comparison accepts.
bool fits(const std::vector<AxisComparison>& comparisons, const ParamValue& value);

// The cross product, in which the axes of a zip are one: their first values belong together, their
// second values, and so on. Error where their numbers of values differ.
std::vector<Choice> combinations(const std::vector<Setting>& axes,
                                 const std::vector<std::vector<std::string>>& zips);

}  // namespace attn
