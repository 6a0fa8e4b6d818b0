// What a run line says of build, machine and system; the calibration is added by the sweep.
#pragma once

#include "harness/store/rows.h"

namespace attn {

Json environment_json();

}  // namespace attn
