// Messages quote input, which may hold ends of lines and what steers a terminal.
#pragma once

#include <string>
#include <string_view>

namespace attn {

// With control characters as escapes, such as \n and \x1b. Every Error's message is made so.
std::string in_one_line(std::string_view message);

}  // namespace attn
