// Throws an Error. The throw is not inlined, which keeps the callers of ATTN_CHECK small.
#include "core/base/check.h"

#include "core/base/one_line.h"

namespace attn {

std::string in_one_line(std::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      line += c;
    else if (c == '\n')
      line += "\\n";
    else if (c == '\t')
      line += "\\t";
    else
      line += fmt::format("\\x{:02x}", byte);
  }
  return line;
}

void throw_error(const std::string& message) { throw Error(in_one_line(message)); }

}  // namespace attn
