// The mark that some editors write before the first character of a text in UTF-8. It is no part of
// the text, and nobody sees it.
#pragma once

#include <string_view>

namespace attn {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

inline std::string_view past_byte_order_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

}  // namespace attn
