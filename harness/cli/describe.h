// Variants and tasks as JSON and as text, from their own metadata: used by list and info.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/store/rows.h"
#include "tasks/api/task.h"
#include "variants/api/variant_info.h"

namespace attn::cli {

Json describe(const ParamSpec& spec);
Json describe(const VariantInfo& info);
Json describe(const TaskInfo& info);
std::string solver_text(const TaskInfo& info);  // "solver: …", of a task that names one
std::string control_text(const TaskInfo& info);  // "control: … solves this task; …", of a control
std::string traits_text(const Traits& traits);  // "exact, causal, cross, padding"
std::vector<std::string> trait_names();
bool has_trait(const Traits& traits, const std::string& name);  // false also for an unknown name
int64_t year_of(const VariantInfo& info);            // the first year that its paper names; 0: none
Json meanings_of(const Traits& traits);              // what each one means, by name
std::string explained_traits(const Traits& traits);  // a line each, indented: what each one means
std::string params_text(const std::vector<ParamSpec>& params);  // a line each, indented

}  // namespace attn::cli
