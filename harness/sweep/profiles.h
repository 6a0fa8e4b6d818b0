// A profile is a list of sub-sweeps, each the axes, variants and tasks of one measure, as text in
// the sweep grammar.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/sweep.h"

namespace attn {

struct SubSweep {
  Measure measure = Measure::speed;
  std::vector<std::string> variants;  // specs; empty: every variant with its defaults
  std::vector<std::string> tasks;     // specs; accuracy only; empty: every task with its defaults
  std::map<std::string, std::string> axes;  // values and ranges; absent: the axis's default
  std::string training;                     // settings beside the defaults; accuracy only
  std::string tune;  // settings to choose among on validation, "learning_rate=[1e-3,3e-3]"
};

struct Profile {
  ProfileInfo info;
  std::vector<SubSweep> sweeps;
};
// full, truncated, linformer, performer, linear: what a profile compares that is not about all.
const std::vector<std::string>& first_variants();

Profile standard_profile();  // profiles_long.cc
Profile long_profile();
Profile lra_profile();
Profile probes_profile();  // profiles_probes.cc
Profile baselines_profile();

const std::vector<SubSweep>& sub_sweeps(
    std::string_view profile);  // Error naming the nearest one when unknown

}  // namespace attn
