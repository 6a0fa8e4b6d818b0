// The list of variants. To add a variant, add one word in CMakeLists.txt.
#include "variants/catalog.h"

#include "core/base/check.h"

namespace attn {

#define PLUGIN(name) VariantInfo name();
namespace variants {
#include "variants/list.inc"
}
#undef PLUGIN

const std::vector<VariantInfo>& all_variants() {
#define PLUGIN(name) variants::name(),
  static const std::vector<VariantInfo> list = {
#include "variants/list.inc"
  };
#undef PLUGIN
  return list;
}

const VariantInfo& find_variant(std::string_view name) {
  std::vector<std::string> names;
  for (const VariantInfo& info : all_variants()) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  throw_error(fmt::format("unknown variant '{}'; nearest is '{}'", name, nearest(name, names)));
}

const VariantInfo& exact_reference() { return find_variant("full"); }

}  // namespace attn
