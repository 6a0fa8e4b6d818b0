// What a variant or a task may be called: the name stands in C++, in file names, on the command
// line and in rows.
#pragma once

#include <algorithm>
#include <string_view>

namespace attn {

inline constexpr std::string_view kPluginNameRule =
    "a name is a small letter, then small letters, digits and '_', 40 characters at most";

inline bool is_plugin_name(std::string_view name) {
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 40 && is_small(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_small(c) || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace attn
