// What a run line says of build, machine and system; the calibration is added by the sweep.
#pragma once

#include <string>

#include "harness/store/rows.h"

namespace attn {

Json environment_json();
// The part of an environment that tells one machine and build from another. Rows of two never share
// a file.
Json machine_of(Json environment);
std::string machine_id();  // of this one, eight hexadecimal digits
// Bytes the cells may use: what the machine, or the container's limit, has left, at least 1; 0
// where the machine does not say.
int64_t free_memory();
// Bytes that each of `jobs` cells at a time may use: as asked, else its part of `free`; 0: no limit
// is known.
int64_t memory_of_each(int64_t jobs, int64_t asked, int64_t free);

}  // namespace attn
