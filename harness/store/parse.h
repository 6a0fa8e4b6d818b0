// JSON from outside (files, child processes, pipes), refused where it nests too deeply: the library
// and everything that walks a value take a stack frame a level.
#pragma once

#include <string>
#include <string_view>

#include "harness/store/rows.h"

namespace attn {

inline constexpr int kMostLevels = 64;  // a row has nine

struct Parsed {
  Json value;         // discarded where there is a fault
  std::string fault;  // "" or what is wrong: "not JSON", "nested deeper than 64 levels"
};

// The only way to JSON from outside; a test looks for others. One pass over `text` before parsing.
Parsed parse_json(std::string_view text);

}  // namespace attn
