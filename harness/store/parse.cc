// Counts brackets, then parses; see parse.h.
#include "harness/store/parse.h"

#include "core/base/check.h"

namespace attn {
namespace {

// Brackets inside strings do not nest. Behind a fault of the text the count may be wrong, but the
// parser does not get there.
bool is_too_deep(std::string_view text) {
  int levels = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') i++;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++levels > kMostLevels) return true;
    } else if (c == ']' || c == '}') {
      levels--;
    }
  }
  return false;
}

}  // namespace

Parsed parse_json(std::string_view text) {
  Parsed parsed{Json(Json::value_t::discarded), ""};
  if (is_too_deep(text)) {
    parsed.fault = fmt::format("nested deeper than {} levels", kMostLevels);
    return parsed;
  }
  parsed.value = Json::parse(text, nullptr, false);
  if (parsed.value.is_discarded()) parsed.fault = "not JSON";
  return parsed;
}

}  // namespace attn
