// The work of a child process, as a request and a reply in JSON.
// Requests: {"do": "measure", "key", "repetitions"}, {"do": "check", "variant" or "task"}, {"do":
// "calibrate", "threads"}, {"do": "pilot", "of", "key", "batch"}; each with "max_memory_bytes" (0:
// none). Replies carry "status" and "reason"; on "ok" also what was found.
#pragma once

#include "harness/store/rows.h"

namespace attn {

// Replies, those of measuring by measure:
//   speed     {"samples": [s…], "flops", "cost"}  (one visit; the parent merges them)
//   memory, fidelity  {"metrics", "samples", "cost"}      cost: "declared" or "measured"
//   accuracy  {"metrics", "samples"}
//   check     {"red": null or the failed check's name, "detail"}
//   calibrate {"calibration"}
//   pilot     {"step_s", "evaluation_s"} or {"shortcuts_s"}
Json answer(const Json& request);

}  // namespace attn
