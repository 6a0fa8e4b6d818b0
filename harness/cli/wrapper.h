// Verbs that Python does: the program hands them to the repository's scripts/bench.
#pragma once

#include "harness/cli/options.h"

namespace attn::cli {

// Replaces this process by `scripts/bench VERB` with the words and options of `arguments`, which
// `verb` declares. Error where scripts/bench is not beside this program; IoError where it does not
// start. Returns never.
[[noreturn]] void hand_to_wrapper(const Verb& verb, const Arguments& arguments);

}  // namespace attn::cli
