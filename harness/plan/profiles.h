// A profile is a list of sub-sweeps, each the axes, variants and tasks of one measure, as text in
// the sweep grammar. The built-in ones are the sweep files of profiles/.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/plan.h"
#include "harness/plan/rules.h"

namespace attn {

struct ProfileInfo {
  std::string name, summary;
  int version = 1;
  double timeout_s = 600;  // of a cell, where none is asked for
};

struct SubSweep {
  Measure measure = Measure::speed;
  std::vector<std::string> variants;  // specs; empty: every variant with its defaults
  std::vector<std::string> tasks;     // specs; accuracy only; empty: every task with its defaults
  std::map<std::string, std::string> axes;  // values and ranges; absent: the axis's default
  std::string training;                     // settings beside the defaults; accuracy only
  std::string tune;       // settings to choose among on validation, "learning_rate=[1e-3,3e-3]"
  std::string tune_by;    // "halving"; "grid" or "": each choice with each seed
  std::string test_with;  // parameters to score the learned weights with too, "rounds=1;rounds=4"
  std::string test_on;    // parameters of the tasks to score them on too, "length=[128,256]"
  Rules rules;
};

struct Profile {
  ProfileInfo info;
  std::vector<SubSweep> sweeps;
  std::string text;  // of its sweep file
};

const std::vector<Profile>& all_built_in();
const std::vector<ProfileInfo>& all_profiles();  // what each of these says of itself
// Error naming the nearest one when unknown.
const Profile& find_profile(std::string_view name);
// Reads a sweep file; `file` is named in an Error, with the line.
Profile read_profile(const std::string& file, std::string_view text);
// The sweep file or the profile that is asked for; null: neither.
const Profile* asked_profile(const SweepRequest& request);

}  // namespace attn
