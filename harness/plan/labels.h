// What people read for a variant, a task and a cell: parameters that are at their defaults, and
// axes and settings that are the same in the whole sweep, are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/cell/key.h"

namespace attn {

struct Cell;

// Stands behind the name of a variant in Python wherever people read it, and what it says.
inline constexpr std::string_view kPythonSign = "‡";
inline constexpr std::string_view kPythonNote =
    "‡: written in Python and run by torch in an interpreter; its time and memory are those of "
    "that "
    "program, not of a native kernel";
// "full", "python_cosine‡".
std::string marked_name(const std::string& name);
// "performer[features=64]": the parameters that are not the default.
std::string variant_label(const Plugin& variant);
// "text" at its default level, "text[preset=small]" at another, "mqar[pairs=4]" where parameters
// differ from every level: those that differ from the default.
std::string task_label(const Plugin& task);
// The axis that labels name whatever the others are: the length, the workload or packed; and
// whether the workload or a list of lengths tells an axis, which is then left out.
std::string always_named(const Axes& axes);
bool is_told(const Axes& axes, const std::string& name);
// "accuracy linear on mqar seed=1": of each cell what tells it from the others of its measure; its
// length or workload always, where it is an axis.
std::vector<std::string> cell_labels(const std::vector<Cell>& cells);

}  // namespace attn
