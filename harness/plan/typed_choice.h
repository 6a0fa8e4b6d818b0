// From texts to the parameters of a cell's key.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/params.h"
#include "harness/plan/grammar.h"

namespace attn {

// One choice of texts as typed parameters; an unknown name or a bad value is an Error that names
// `owner`.
Params typed(std::string_view owner, const std::vector<ParamSpec>& specs, const Choice& choice);
// As many as were chosen, for TaskInfo::resolve.
std::map<std::string, ParamValue> typed_choice(std::string_view owner,
                                               const std::vector<ParamSpec>& specs,
                                               const Choice& choice);

}  // namespace attn
