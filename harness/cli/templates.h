// The templates of `attnbench new` (templates/*.in), embedded by CMake. In each, @name@ stands for
// the name of what is made, @Class@ for its class.
#pragma once

#include <map>
#include <string>

namespace attn::cli {

// The text of templates/<name>.in with the values in place of their @marks@. Error where there is
// no such template or a mark has no value.
std::string filled_template(const std::string& name,
                            const std::map<std::string, std::string>& values);

}  // namespace attn::cli
