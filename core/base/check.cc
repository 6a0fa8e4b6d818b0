// The one place that throws, so that callers of ATTN_CHECK stay small.
#include "core/base/check.h"

#include <utility>

namespace attn {

void throw_error(std::string message) { throw Error(std::move(message)); }

}  // namespace attn
