// The attention mixers that libraries ship, and what does each of them here, for `list --coverage`:
// profiles/mixers.toml, which CMake embeds.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"

namespace attn {

// What stands for a library's mixer here.
enum class MixerKind {
  variant,  // `by` is the spec of a variant, perhaps of another name
  stack,    // `by` is a stack of variants, such as mamba+truncated
  option,   // `by` says which option or position code does it
  none,     // `by` says why the mixer is none
  missing,  // `by` is the name of an entry of MixerSurvey::missing
};
constexpr std::array<EnumName<MixerKind>, 5> names_of(MixerKind) {
  return {{{MixerKind::variant, "variant"},
           {MixerKind::stack, "stack"},
           {MixerKind::option, "option"},
           {MixerKind::none, "none"},
           {MixerKind::missing, "missing"}}};
}

struct ShippedMixer {
  std::string name;  // as the library has it
  MixerKind kind = MixerKind::missing;
  std::string by, note;
};

struct MixerLibrary {
  std::string name, version, source;  // source: the repository and what was read there
  std::vector<ShippedMixer> mixers;
};

struct MissingMixer {
  std::string name, summary, paper;
  std::vector<std::string> asked;      // threads that ask for it: owner/name#number
  std::vector<std::string> libraries;  // that ship it, in the order of the file
};

struct MixerSurvey {
  std::vector<MixerLibrary> libraries;
  std::vector<MissingMixer> missing;    // the most asked first: by libraries and threads together
  std::vector<std::string> ours_alone;  // variants that no library ships
};

// Error with file and line where an entry names a variant that there is not. One that is missing in
// the text, and a variant by now, is read as a variant.
MixerSurvey read_mixers(const std::string& file, std::string_view text);
const MixerSurvey& all_mixers();

}  // namespace attn
