// The list of variants. To add a variant, add one word in CMakeLists.txt.
#include "variants/catalog.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "core/base/plugin_name.h"

namespace attn {

#define PLUGIN(name) VariantInfo name();
namespace variants {
#include "variants/list.inc"
}
#undef PLUGIN

namespace {

std::deque<VariantInfo>& variant_list() {
#define PLUGIN(name) variants::name(),
  static std::deque<VariantInfo> list = {
#include "variants/list.inc"
  };
#undef PLUGIN
  return list;
}

// File hashes by the names of their variants.
std::map<std::string, std::string, std::less<>>& variant_files() {
  static std::map<std::string, std::string, std::less<>> files;
  return files;
}

}  // namespace

const std::deque<VariantInfo>& all_variants() { return variant_list(); }

const VariantInfo* variant_named(std::string_view name) {
  for (const VariantInfo& info : all_variants())
    if (info.name == name) return &info;
  return nullptr;
}

const VariantInfo& find_variant(std::string_view name) {
  if (const VariantInfo* const info = variant_named(name)) return *info;
  std::vector<std::string> names;
  for (const VariantInfo& info : all_variants()) names.push_back(info.name);
  throw_error(fmt::format("unknown variant '{}'; nearest is '{}'", name, nearest(name, names)));
}

const VariantInfo& exact_reference() { return find_variant("full"); }

void add_variant(VariantInfo info, const std::string& file_hash) {
  ATTN_CHECK(is_plugin_name(info.name), "variant '{}': {}", info.name, kPluginNameRule);
  ATTN_CHECK(!variant_named(info.name), "there is a variant '{}' already; give it another name",
             info.name);
  ATTN_CHECK(info.family == kPythonFamily ||
                 std::count(families().begin(), families().end(), info.family) == 1,
             "variant '{}': unknown family '{}'; nearest is '{}'", info.name, info.family,
             nearest(info.family, families()));
  ATTN_CHECK(info.name.starts_with(kPythonNames) == (info.family == kPythonFamily),
             "variant '{}': only those in Python begin with '{}'", info.name, kPythonNames);
  ATTN_CHECK(info.make, "variant '{}' has no `make`; make_as<Class> makes one", info.name);
  variant_files()[info.name] = file_hash;
  variant_list().push_back(std::move(info));
}

std::string variant_plugin(std::string_view name) {
  const auto file = variant_files().find(name);
  return file == variant_files().end() ? "" : file->second;
}

}  // namespace attn
