// Run lines of the first versions, which lack fields that later readers need.
#pragma once

#include "harness/cell/row.h"

namespace attn {

// Of any version. What a line lacks is what was so when it was written: nothing was tuned, and the
// family of a variant is that of the catalogue, "" where it has none of the name.
RunLine earlier_run_line(Json line);

}  // namespace attn
