// A sweep file: TOML of one or several sweeps. docs/sweep_files.md lists its keys.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/profiles.h"

namespace attn {

// What a sweep file may name. Each function throws an Error where it does not know the text.
struct SweepNames {
  std::vector<std::string> variants, tasks;  // for which "*" stands
  std::function<void(const std::string&)> variant, task, training;
  std::function<void(const Condition&)> condition;
  std::function<void(const SubSweep&)> sweep;                 // as a whole
  std::function<const Profile&(const std::string&)> profile;  // that a file extends
};

// The sweeps of the file, after those of the profile that it extends. Every Error is one line and
// begins with "file:line: ". Without a name in the text, the file's name is the name.
Profile parse_sweep_file(const std::string& file, std::string_view text, const SweepNames& names);

}  // namespace attn
