// What every target expects of a reader: it takes an input or refuses it by an Error of one line.
// Any other exception goes through, and what does not hold throws Defect: libFuzzer stops there,
// and a test fails.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/base/one_line.h"

namespace attn::fuzz {

struct Defect : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& what) {
  if (!holds) throw Defect(what);
}

inline bool is_one_line(std::string_view text) {
  return !text.empty() && in_one_line(text) == text;
}

// Whether `read` took its input.
template <class Read>
bool accepts(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    require(is_one_line(error.what()), "an Error of several lines: " + std::string(error.what()));
    return false;
  }
}

}  // namespace attn::fuzz
