// From a request to sub-sweeps with every text parsed, every default in place and every name and
// value checked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/cell/names.h"
#include "harness/plan/grammar.h"
#include "harness/plan/plan.h"
#include "harness/plan/rules.h"
#include "harness/plan/sweep_file.h"
#include "tasks/api/task.h"
#include "variants/api/variant_info.h"

namespace attn {

struct Resolved {
  Measure measure = Measure::speed;
  std::vector<std::pair<const VariantInfo*, Params>> variants;
  // Of accuracy, and of fidelity whose inputs are captured from a model.
  std::vector<std::pair<const TaskInfo*, Params>> tasks;
  std::vector<Setting> axes;                   // those that apply, in the order of a row's axes
  std::vector<Params> training;                // where there are tasks
  std::vector<std::string> tuned;              // settings of `training` to be chosen on validation
  bool is_halved = false;                      // by halving
  std::string test_with;                       // accuracy only; as SubSweep::test_with
  std::vector<std::vector<Params>> tested;     // of each variant, what `test_with` says
  std::string test_on;                         // accuracy only; as SubSweep::test_on
  std::vector<std::vector<Params>> tested_on;  // of each task, what `test_on` says
  Rules rules;
};

// Flags win over the profile, and the profile over the defaults.
std::vector<Resolved> resolve(const SweepRequest& request);

// What the catalogues know of a sweep file's names; without profiles.
SweepNames catalogued_names();

}  // namespace attn
