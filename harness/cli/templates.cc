// See templates.h.
#include "harness/cli/templates.h"

#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace attn::cli {

extern const std::vector<std::pair<const char*, const char*>> kTemplateTexts;

std::string filled_template(const std::string& name,
                            const std::map<std::string, std::string>& values) {
  std::string_view text;
  for (const auto& [known, content] : kTemplateTexts)
    if (name == known) text = content;
  ATTN_CHECK(!text.empty(), "there is no template '{}'", name);
  std::string filled;
  for (size_t begin = 0; begin < text.size();) {
    const size_t mark = text.find('@', begin), end = text.find('@', mark + 1);
    filled += text.substr(begin, mark - begin);
    if (mark == std::string_view::npos) break;
    const auto value = values.find(std::string(text.substr(mark + 1, end - mark - 1)));
    ATTN_CHECK(end != std::string_view::npos && value != values.end(),
               "template '{}': no value for what follows the '@' at {}", name, mark);
    filled += value->second;
    begin = end + 1;
  }
  return filled;
}

}  // namespace attn::cli
