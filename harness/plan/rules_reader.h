// Reads the rules of a sweep file: `zip`, `include` and `exclude`; see rules.h. An Error says where
// in the file it is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/plan/profiles.h"
#include "harness/plan/rules.h"
#include "harness/plan/toml_reader.h"

namespace attn {

// `value` is that of `zip` in a block of these sweeps, whose axes it names.
std::vector<std::vector<std::string>> read_zips(const TomlReader& reader, const TomlValue& value,
                                                const std::vector<SubSweep>& sweeps);
// The conditions that stand in the table under `key`. `check` throws an Error for an unknown name.
std::vector<Condition> read_conditions(const TomlReader& reader, const char* key,
                                       const TomlValue& table,
                                       const std::function<void(const Condition&)>& check);

}  // namespace attn
