// What an error says beside a name that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn {

// "; nearest is 'NAME'", NAME the candidate of least edit distance to `word`; "" where even that
// one differs in more than half of the letters of the longer one: a far name is no help.
std::string nearest_note(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attn
