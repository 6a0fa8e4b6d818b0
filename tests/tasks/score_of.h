// A shortcut's score by its name, for tests of what tasks offer.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "tasks/api/task.h"

namespace attn {

inline double score_of(const std::vector<Shortcut>& shortcuts, std::string_view name) {
  for (const Shortcut& shortcut : shortcuts)
    if (shortcut.name == name) return shortcut.score;
  throw_error(fmt::format("no shortcut '{}'", name));
}

}  // namespace attn
