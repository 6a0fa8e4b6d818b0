// Hashes of plug-ins and stacks from the table that cmake/source_hashes.cmake writes; see
// source_hash.h.
#include "harness/cell/source_hash.h"

#include <vector>

#include "harness/cell/codec.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {

std::string source_hash(std::string_view folder, std::string_view name) {
  const VariantInfo* const variant = folder == "variants" ? variant_named(name) : nullptr;
  if (variant && variant->is_stack()) {
    std::vector<Json> hashes;
    for (const LayerVariant& layer : variant->layers)
      hashes.emplace_back(source_hash(folder, plain_name(layer.variant->name)));
    return hash_of(hashes);
  }
  const std::string file = folder == "variants" ? variant_plugin(name)
                           : folder == "tasks"  ? task_plugin(name)
                                                : "";
  return file.empty() ? built_in_hash(folder, name) : hash_of({built_in_hash(folder, ""), file});
}

}  // namespace attn
