// What a child left behind, as a reply: its own, or the status and reason that its end amounts to.
#pragma once

#include <string>

#include "harness/cell/request.h"
#include "harness/sweep/process.h"

namespace attn {

Reply reply_of(const ChildResult& result, double timeout_s);
std::string one_line(std::string_view text,
                     size_t most = 500);  // the end of `text`, printable UTF-8 without newlines

}  // namespace attn
