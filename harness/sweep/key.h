// A cell's key as JSON, and back: the one form in which a cell is named, hashed, handed to its
// process and written to its row.
// {"protocol", "measure", "variant": {"name", "params"}, "task" or null, "axes", "training" or
// null, "source"}
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/params.h"
#include "harness/measure/workload.h"
#include "harness/store/rows.h"
#include "harness/sweep/grammar.h"

namespace attn {

inline constexpr int kProtocol =
    1;  // raised when the way of measuring changes, which makes every cell a new one

Json to_json(const ParamValue& value);
Json to_json(const Params& params);
std::map<std::string, ParamValue> params_of(const Json& object);

// One choice of texts as typed parameters; an unknown name or a bad value is an Error that names
// `owner`.
Params typed(std::string_view owner, const std::vector<ParamSpec>& specs, const Choice& choice);
// As many as were chosen, for TaskInfo::resolve.
std::map<std::string, ParamValue> typed_choice(std::string_view owner,
                                               const std::vector<ParamSpec>& specs,
                                               const Choice& choice);

Json plugin_json(const std::string& name, const Params& params);  // {"name":…, "params":{…}}
std::string plugin_text(const Json& plugin);  // "linformer[rank=64,shared=false]"
WorkloadSpec workload_of(const Json& key);    // of speed, memory and fidelity cells
Json group_of(const Json& key);               // the key but for the variant

// The hash of the sources a variant's or a task's figures depend on, taken when the program was
// built.
std::string source_hash(std::string_view folder, std::string_view name);

}  // namespace attn
