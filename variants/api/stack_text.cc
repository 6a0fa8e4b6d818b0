// The parts of a stack's text; see stack_text.h.
#include "variants/api/stack_text.h"

#include <charconv>

#include "core/base/check.h"

namespace attn {
namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

StackPart part_of(std::string_view stack, std::string_view text) {
  constexpr int64_t kMostLayers = 64;
  StackPart part;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, part.times);
  std::string_view rest(after, static_cast<size_t>(end - after));
  for (const std::string_view sign : {"*", "·"})
    if (after != text.data() && rest.starts_with(sign)) {
      part.spec = trimmed(rest.substr(sign.size()));
      ATTN_CHECK(error == std::errc() && part.times >= 1 && part.times <= kMostLayers,
                 "'{}': '{}' repeats a layer; a number from 1 to {} does", stack, text,
                 kMostLayers);
    }
  if (part.spec.empty()) part = {1, std::string(text)};
  ATTN_CHECK(!part.spec.empty(), "'{}' has a layer without a variant; write full+linear", stack);
  return part;
}

struct NamedStack {
  std::string_view name, text;
};
// based: Arora et al. 2024, arXiv:2402.18668; the order of layers is that of HazyResearch/based,
// train/configs/experiment/example/based-360m.yaml, where a window of 128 sees 64 keys before a
// query and its own.
constexpr NamedStack kNamed[] = {
    {"based", "base_conv+taylor[block=paper]+truncated[window=64]+2*base_conv"}};

}  // namespace

std::string_view spelled_out(std::string_view text) {
  for (const auto& [name, stack] : kNamed)
    if (text == name) return stack;
  return text;
}

std::vector<StackPart> stack_parts(std::string_view text) {
  std::vector<StackPart> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (text[i] != '+' || depth > 0)) continue;
    parts.push_back(part_of(text, trimmed(text.substr(begin, i - begin))));
    begin = i + 1;
  }
  return parts;
}

bool is_stack_text(std::string_view text) {
  if (text.find_first_of("+*") == text.npos && text.find("·") == text.npos) return false;
  const std::vector<StackPart> parts = stack_parts(text);
  return parts.size() > 1 || parts[0].spec != trimmed(text);
}

}  // namespace attn
