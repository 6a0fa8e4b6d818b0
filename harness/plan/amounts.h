// Times, shares and amounts of memory as people write them.
#pragma once

#include <cstdint>
#include <string>

namespace attn {

double parse_seconds(const std::string& text);  // "90", "90s", "10m", "1.5h"
// "2%", "0.02": at least 0 and below 1. An Error names the option.
double parse_share(const std::string& option, const std::string& text);
int64_t parse_bytes(const std::string& text);  // "512M", "8G": powers of 1024

}  // namespace attn
