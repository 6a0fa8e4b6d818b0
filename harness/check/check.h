// The contract that every variant and every task must keep, as callable checks: used by the
// conformance tests, by `attnbench check`, and by `run` before it publishes a number. Facts and
// invariants: docs in each file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/check/result.h"
#include "tasks/api/task.h"
#include "variants/api/variant_info.h"

namespace attn {

// Every check that the variant's traits call for, with these parameters (defaults filled in), or
// the one named `only`. Never throws for a broken variant: an exception inside a check is a failed
// result. Error for wrong parameters. A variant of the catalog is also checked in double; those
// results are named "gradients (double)".
std::vector<attn_check::Result> check_variant(const VariantInfo& info,
                                              const std::map<std::string, ParamValue>& params,
                                              attn_check::Level level,
                                              const std::string& only = "");
std::vector<attn_check::Result> check_task(const TaskInfo& info,
                                           const std::map<std::string, ParamValue>& params,
                                           attn_check::Level level, const std::string& only = "");

// The names that `only` may take, in the order in which the checks run.
std::vector<std::string> variant_check_names(const VariantInfo& info);
std::vector<std::string> task_check_names();

bool all_passed(const std::vector<attn_check::Result>& results);

}  // namespace attn
