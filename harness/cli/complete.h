// What may follow on a command line that is being typed, for the shells' completion.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace attn::cli {

// `words` follow the program's name; the last one is being typed and may be empty. Whole words that
// begin with what is typed, from the tables that the help is made of; none where a file is
// expected.
std::vector<std::string> completions(const std::vector<Verb>& verbs,
                                     const std::vector<std::string>& words);

}  // namespace attn::cli
