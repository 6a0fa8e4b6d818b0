// Throws an Error. The throw is not inlined, which keeps the callers of ATTN_CHECK small.
#include "core/base/check.h"

#include <utility>

namespace attn {

void throw_error(std::string message) { throw Error(std::move(message)); }

}  // namespace attn
