// The manual page attnbench(1), made of the same tables as the help.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace attn::cli {

std::string manual_page(const std::vector<Verb>& verbs);  // in roff, with the macros of man(7)

}  // namespace attn::cli
