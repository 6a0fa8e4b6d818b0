// TOML text as a tree of plain values with line numbers. toml++ stays behind this header, in
// toml_text.cc alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

inline constexpr size_t kMostTomlBytes = 1 << 18;

struct TomlValue {
  enum class Kind { text, whole, number, flag, date, list, table };
  Kind kind = Kind::table;
  int64_t line = 1;
  std::string text;               // of a text, a whole number, a number or a flag
  std::vector<std::string> keys;  // of a table, in the order written; their values are `items`
  std::vector<TomlValue> items;   // of a list or a table

  bool is_scalar() const { return kind < Kind::date; }
  const TomlValue* find(std::string_view name) const;  // of a table; null where it is not there
};

const char* name_of(TomlValue::Kind kind);  // "a text", "a table"

// The whole file, a table. Characters beyond ASCII may stand in comments alone. `file` is named in
// an Error, with the line.
TomlValue parse_toml(const std::string& file, std::string_view text);

}  // namespace attn
