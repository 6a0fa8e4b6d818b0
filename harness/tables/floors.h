// The noise floor that a table is held to: no ratio of times below 1 + floor is called faster.
#pragma once

#include <cstdint>
#include <string>

#include "harness/cell/noise_floor.h"

namespace attn {

// The floor of this mode and number of threads at the nearest measured length; of two that are as
// near, by the ratio of lengths, the higher one. Null where none of this mode and these threads was
// measured.
const FloorAt* nearest_floor(const NoiseFloor& floors, Mode mode, int64_t threads, int64_t length);

// "noise floor of this machine: 1.3 % at length 64, 0.9 % at 512 (attnbench noise, 2026-01-31)", or
// that none of this mode and these threads was measured. Of at least one floor.
std::string floor_note(const NoiseFloor& floors, Mode mode, int64_t threads);

}  // namespace attn
