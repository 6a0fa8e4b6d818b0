// Times and amounts of memory as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace attn {

double parse_seconds(const std::string& text);  // "90", "90s", "10m", "1.5h"
int64_t parse_bytes(const std::string& text);   // "512M", "8G": powers of 1024

}  // namespace attn
