// See topics.h.
#include "harness/cli/topics.h"

#include <utility>

#include "core/base/check.h"

namespace attn::cli {

using NamedTexts = std::vector<std::pair<const char*, const char*>>;
extern const NamedTexts kTopicTexts, kShellTexts;

namespace {

const char* text_named(const NamedTexts& texts, const std::string& name) {
  for (const auto& [known, text] : texts)
    if (name == known) return text;
  return nullptr;
}

}  // namespace

std::vector<std::string> topic_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : kTopicTexts) names.emplace_back(name);
  return names;
}

const char* topic_text(const std::string& name) { return text_named(kTopicTexts, name); }

const char* completion_script(const std::string& shell) {
  const char* const text = text_named(kShellTexts, "attnbench." + shell);
  ATTN_CHECK(text, "no completion for '{}'; expected bash, zsh or fish", shell);
  return text;
}

}  // namespace attn::cli
