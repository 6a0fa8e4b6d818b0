// Verbs that Python does: the program hands them to the repository's scripts/bench, or, where it is
// installed, to the package attnbench.
#pragma once

#include "harness/cli/options.h"

namespace attn::cli {

// Replaces this process by `scripts/bench VERB`, or `python -m attnbench VERB`, with the words and
// options of `arguments`, which `verb` declares. Error where neither is by this program; IoError
// where it does not start. Returns never.
[[noreturn]] void hand_to_python(const Verb& verb, const Arguments& arguments);

}  // namespace attn::cli
