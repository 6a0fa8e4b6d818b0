// The list of variants. Add yours as one word here and one in CMakeLists.txt.
#include "variants/catalog.h"

#include "core/check.h"

#define ATTN_VARIANTS(X) \
  X(full)                \
  X(truncated)           \
  X(linformer)           \
  X(performer)           \
  X(linear)              \
  X(relu)                \
  X(conv)                \
  X(recurrent)           \
  X(window_mlp)          \
  X(mean)                \
  X(local)               \
  X(sparse)              \
  X(longformer)          \
  X(bigbird)             \
  X(additive)            \
  X(graph)               \
  X(sinkhorn)            \
  X(reformer)            \
  X(synthesizer)

namespace attn {

#define ATTN_DECLARE(name) VariantInfo name();
namespace variants {
ATTN_VARIANTS(ATTN_DECLARE)
}
#undef ATTN_DECLARE

const std::vector<VariantInfo>& all_variants() {
#define ATTN_CALL(name) variants::name(),
  static const std::vector<VariantInfo> list = {ATTN_VARIANTS(ATTN_CALL)};
#undef ATTN_CALL
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

}  // namespace attn
