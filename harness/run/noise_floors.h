// The noise floors that `attnbench noise` measured on this machine with this build, kept in a file
// per user (user_cache.h): a run line quotes them.
#pragma once

#include <string>

#include "harness/cell/noise_floor.h"

namespace attn {

// In the order of mode, threads and length; empty where the file holds none of this machine.
NoiseFloor kept_floors(const std::string& file);
// A floor takes the place of an older one of its mode, threads and length. On disk at once, best
// effort.
void keep_floors(const std::string& file, const NoiseFloor& floors);

}  // namespace attn
