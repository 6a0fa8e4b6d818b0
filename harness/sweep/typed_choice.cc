// Typed parameters from texts; see key.h.
#include "harness/sweep/typed_choice.h"

#include "harness/cell/codec.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {

std::map<std::string, ParamValue> typed_choice(std::string_view owner,
                                               const std::vector<ParamSpec>& specs,
                                               const Choice& choice) {
  std::map<std::string, ParamValue> given;
  for (const auto& [name, text] : choice) {
    given[name] = text;  // an unknown name is refused below, by Params
    for (const ParamSpec& spec : specs)
      if (spec.name == name) given[name] = spec.parse(owner, text);
  }
  return given;
}

Params typed(std::string_view owner, const std::vector<ParamSpec>& specs, const Choice& choice) {
  return Params(owner, specs, typed_choice(owner, specs, choice));
}

std::string group_of(const CellKey& key) {
  CellKey group = key;
  group.variant = {};
  group.source = {};
  return to_json(group).dump();
}

std::string source_hash(std::string_view folder, std::string_view name) {
  const VariantInfo* const variant = folder == "variants" ? variant_named(name) : nullptr;
  if (variant && variant->is_stack()) {
    std::vector<Json> hashes;
    for (const LayerVariant& layer : variant->layers)
      hashes.emplace_back(source_hash(folder, layer.variant->name));
    return hash_of(hashes);
  }
  const std::string file = folder == "variants" ? variant_plugin(name)
                           : folder == "tasks"  ? task_plugin(name)
                                                : "";
  return file.empty() ? built_in_hash(folder, name) : hash_of({built_in_hash(folder, ""), file});
}

}  // namespace attn
