// See add.h. ATTN_DOUBLE decides which of the functions this file defines.
#include "harness/plugin/add.h"

#include "harness/plugin/entry.h"
#include "variants/catalog.h"

namespace attn_plugin {
namespace {

std::vector<std::string> add_variants(const void* entry, const std::string& file_hash) {
  std::vector<std::string> names;
  for (auto make = static_cast<const attn::PluginEntry*>(entry)->variants; *make; ++make) {
    attn::VariantInfo info = (*make)();
    names.push_back(info.name);
    attn::add_variant(std::move(info), file_hash);
  }
  return names;
}

}  // namespace

#ifdef ATTN_DOUBLE
bool has_double() { return true; }
std::vector<std::string> add_double(const void* entry, const std::string& file_hash) {
  return add_variants(entry, file_hash);
}
#else
std::vector<std::string> add_float(const void* entry, const std::string& file_hash) {
  return add_variants(entry, file_hash);
}
#endif

}  // namespace attn_plugin
