// The text of a stack, such as full+2·linear, as the parts that it names; see stack.h. Reads text
// alone, without the variants.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

// A part of a stack's text, "2*truncated[window=32]": how many layers, and of what.
struct StackPart {
  int64_t times = 1;
  std::string spec;
};
// The parts between '+' outside of brackets; "2*" or "2·" before a part repeats it. Error for a
// part that is empty or repeated less than once or more often than a model has layers.
std::vector<StackPart> stack_parts(std::string_view text);
// The text of the stack that papers call by a name, "based"; another text as it is.
std::string_view spelled_out(std::string_view text);
// Whether the text has several parts, or a part that is repeated.
bool is_stack_text(std::string_view text);

}  // namespace attn
