// The reply of a child process that has ended. Where the child gave none, the way in which it ended
// sets the status and the reason.
#pragma once

#include <string>

#include "harness/cell/request.h"
#include "harness/process/process.h"

namespace attn {

Reply outcome_of(const ChildResult& result, double timeout_s);

}  // namespace attn
