// Enums with a fixed list of names. An enum takes part by a function beside it:
//   constexpr std::array<EnumName<Mode>, 2> names_of(Mode) {
//     return {{{Mode::forward, "forward"}, {Mode::train, "train"}}};
//   }
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace attn {

template <class Enum>
struct EnumName {
  Enum value;
  const char* name;
};

template <class Enum>
const char* name_of(Enum value) {
  for (const auto& entry : names_of(value))
    if (entry.value == value) return entry.name;
  return "";
}

// nullopt: no value has this name.
template <class Enum>
std::optional<Enum> value_named(std::string_view name) {
  for (const auto& entry : names_of(Enum{}))
    if (entry.name == name) return entry.value;
  return std::nullopt;
}

}  // namespace attn
