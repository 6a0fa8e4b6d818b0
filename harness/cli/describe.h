// Variants and tasks as JSON and as text, from their own metadata: used by list and info.
#pragma once

#include <string>

#include "harness/store/rows.h"
#include "tasks/api/task.h"
#include "variants/api/variant_info.h"

namespace attn::cli {

Json describe(const ParamSpec& spec);
Json describe(const VariantInfo& info);
Json describe(const TaskInfo& info);
std::string control_text(const TaskInfo& info);  // "control: … solves this task; …", of a control
std::string traits_text(const Traits& traits);       // "exact, causal, cross, padding"
std::string explained_traits(const Traits& traits);  // a line each, indented: what each one means
std::string params_text(const std::vector<ParamSpec>& params);  // a line each, indented

}  // namespace attn::cli
