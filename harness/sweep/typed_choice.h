// From texts to the parts of a cell's key, and what keys have in common.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/params.h"
#include "harness/cell/key.h"
#include "harness/sweep/grammar.h"

namespace attn {

// One choice of texts as typed parameters; an unknown name or a bad value is an Error that names
// `owner`.
Params typed(std::string_view owner, const std::vector<ParamSpec>& specs, const Choice& choice);
// As many as were chosen, for TaskInfo::resolve.
std::map<std::string, ParamValue> typed_choice(std::string_view owner,
                                               const std::vector<ParamSpec>& specs,
                                               const Choice& choice);

// A text that two keys share where they differ in nothing but the variant.
std::string group_of(const CellKey& key);

// The hash of the sources a variant's or a task's figures depend on, or, of ("harness", "check"),
// of those that check them; of a plug-in's, of its file and the sources that all variants, or all
// tasks, depend on. "" for an unknown name.
std::string source_hash(std::string_view folder, std::string_view name);
// The table behind it, taken when the program was built: without plug-ins; of the name "", of what
// all variants, or all tasks, depend on.
std::string built_in_hash(std::string_view folder, std::string_view name);

}  // namespace attn
