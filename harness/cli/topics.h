// Texts of `attnbench help TOPIC` (docs/help/*.txt) and of `attnbench completion SHELL`
// (harness/cli/shells), embedded by CMake.
#pragma once

#include <string>
#include <vector>

namespace attn::cli {

std::vector<std::string> topic_names();
const char* topic_text(const std::string& name);  // null: no such topic
// Error where no such shell is known.
const char* completion_script(const std::string& shell);

}  // namespace attn::cli
