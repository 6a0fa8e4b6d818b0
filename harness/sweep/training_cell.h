// What a child process does for accuracy cells: the whole training, or a pilot of it; see
// one_cell.h and pilots.h. Private to harness/sweep.
#pragma once

#include "harness/store/rows.h"

namespace attn {

// A cell's "metrics" and "samples"; "status" and "reason" too where it diverged.
Json accuracy(const Json& key);

// {"of": "training", "key", "batch"}: {"step_s", "evaluation_s"} of a step of the key's batch and
// of an example, from steps of `batch` sequences. {"of": "shortcuts", "key"}: {"shortcuts_s"}.
Json pilot(const Json& asked);

}  // namespace attn
