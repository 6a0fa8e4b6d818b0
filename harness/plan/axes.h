// The axes of a sweep: name, type, default and range, and the measures each applies to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/params.h"
#include "harness/cell/names.h"
#include "harness/plan/grammar.h"

namespace attn {

struct AxisInfo {
  ParamSpec spec;
  std::vector<Measure> measures;
  // Measures whose cells are without it where nothing gives it a value: what was measured before
  // the axis was there keeps its id.
  std::vector<Measure> optional_in = {};
  bool applies_to(Measure measure) const;
  bool is_optional(Measure measure) const;
};

const std::vector<AxisInfo>& all_axes();           // in the order of a row's `axes`
const AxisInfo& find_axis(std::string_view name);  // Error naming the nearest one when unknown
const std::vector<std::string>& measure_names();
// Values of an axis, expanded and checked against its type and range.
std::vector<std::string> axis_values(const AxisInfo& axis, std::string_view text);
// Whether a value of the axis `input` is captured from a model.
bool is_captured_input(const std::string& value);
// Whether one of them is.
bool captures_inputs(const std::vector<std::string>& values);

}  // namespace attn
