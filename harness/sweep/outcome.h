// What a child left behind, as a reply: its own JSON, or the status and reason that its end amounts
// to.
#pragma once

#include <string>

#include "harness/store/rows.h"
#include "harness/sweep/process.h"

namespace attn {

// `reply` where all its figures are finite numbers; else, since a row cannot hold it, the reply
// {"status": `otherwise`, "reason"}, with the samples that can be kept of a run that diverged.
Json with_finite_figures(Json reply, const char* otherwise);

Json reply_of(const ChildResult& result, double timeout_s);
std::string one_line(std::string_view text,
                     size_t most = 500);  // the end of `text`, printable UTF-8 without newlines

}  // namespace attn
