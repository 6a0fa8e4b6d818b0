// What a run line says of build, machine and system; the calibration is added by the sweep.
#pragma once

#include "harness/store/rows.h"

namespace attn {

Json environment_json();
// Bytes the cells may use: what the machine, or the container's limit, has left; 0 where neither
// says.
int64_t free_memory();

}  // namespace attn
