// What a child left behind, as a reply: its own, or the status and reason that its end amounts to.
#pragma once

#include <string>

#include "harness/cell/request.h"
#include "harness/sweep/process.h"

namespace attn {

Reply reply_of(const ChildResult& result, double timeout_s);

}  // namespace attn
