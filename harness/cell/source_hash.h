// Which sources the figures of a variant or a task depend on, as one hash; see Sources in key.h.
#pragma once

#include <string>
#include <string_view>

namespace attn {

// The hash of the sources a variant's or a task's figures depend on, or, of ("harness", "check"),
// of those that check them; of a plug-in's, of its file and the sources that all variants, or all
// tasks, depend on. "" for an unknown name.
std::string source_hash(std::string_view folder, std::string_view name);
// The table behind it, taken when the program was built: without plug-ins; of the name "", of what
// all variants, or all tasks, depend on.
std::string built_in_hash(std::string_view folder, std::string_view name);

}  // namespace attn
