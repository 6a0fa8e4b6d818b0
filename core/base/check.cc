// Throws an Error. The throw is not inlined, which keeps the callers of ATTN_CHECK small.
#include "core/base/check.h"

namespace attn {

void throw_error(const std::string& message) { throw Error(message); }

}  // namespace attn
