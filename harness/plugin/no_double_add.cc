// add.h for a build without double libraries (ATTN_F64=OFF, as with the sanitizers).
#include "harness/plugin/add.h"

namespace attn_plugin {

bool has_double() { return false; }

std::vector<std::string> add_double(const void*, const std::string&) { return {}; }

}  // namespace attn_plugin
