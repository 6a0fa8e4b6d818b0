// The machine and the build, as far as what one sweep keeps for later ones depends on them
// (harness/store/user_cache.h).
#pragma once

#include <string>

namespace attn {

const std::string& machine_and_build();

}  // namespace attn
