// Specs of variants and of stacks, looked up; see variant_choices.h.
#include "harness/plan/variant_choices.h"

#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "harness/plan/python_variants.h"
#include "harness/plan/typed_choice.h"
#include "tasks/catalog.h"
#include "variants/api/stack.h"
#include "variants/catalog.h"

namespace attn {
namespace {

// The variant, with the layer of its paper where the choice says so; what it says is taken out.
const VariantInfo& chosen_block(const VariantInfo& info, Choice& choice) {
  const auto at = std::find_if(choice.begin(), choice.end(),
                               [](const auto& setting) { return setting.first == kBlockParam; });
  if (at == choice.end() || !asks_for_layer(info)) return info;
  const VariantInfo& chosen = in_block(info, at->second);
  choice.erase(at);
  return chosen;
}

void add_choices(const Spec& spec, VariantChoices& resolved) {
  ATTN_CHECK(variant_named(spec.name) || !task_named(spec.name),
             "'{0}' is a task, not a variant: use -t {0}", spec.name);
  const VariantInfo& info = find_variant(catalogued(spec.name));
  const std::vector<Choice> choices = cross_product(spec.settings);
  std::set<std::string> seen;
  for (Choice choice : choices) {
    const VariantInfo& of = chosen_block(info, choice);
    auto values = typed_choice(of.name, of.params, choice);
    // Of a grid, a parameter that counts with some choices only is left out beside the others.
    if (choices.size() > 1) values = effective(of.params, std::move(values));
    Params params(of.name, of.params, values);
    if (choices.size() == 1 || seen.insert(params.str()).second)
      resolved.emplace_back(&of, std::move(params));
  }
}

// Every combination of the choices of its layers.
void add_stacks(const Spec& spec, VariantChoices& resolved) {
  std::vector<std::vector<LayerVariant>> stacks = {{}};
  for (const auto& [layer, times] : spec.layers) {
    ATTN_CHECK(!layer.name.starts_with(kPythonPrefix),
               "'{}': a stack has no layers written in Python", spec.name);
    VariantChoices choices;
    add_choices(layer, choices);
    ATTN_CHECK(stacks.size() * choices.size() <= kMostCells, "'{}' is more than {} stacks",
               spec.name, kMostCells);
    std::vector<std::vector<LayerVariant>> longer;
    for (const auto& stack : stacks)
      for (const auto& [info, params] : choices) {
        longer.push_back(stack);
        longer.back().insert(longer.back().end(), static_cast<size_t>(times),
                             layer_of(*info, params.values()));
      }
    stacks = std::move(longer);
  }
  for (const auto& stack : stacks) {
    const LayerVariant found = find_stack(stack);
    const VariantInfo& info = find_variant(found.variant->name);
    resolved.emplace_back(&info, Params(info.name, info.params, found.params));
  }
}

}  // namespace

VariantChoices resolve_variants(const std::vector<Spec>& specs) {
  VariantChoices resolved;
  for (const Spec& spec : specs) (spec.layers.empty() ? add_choices : add_stacks)(spec, resolved);
  return resolved;
}

Plugin key_of_variant(const VariantInfo& info, const Params& params) {
  return {plain_name(info.name), params.for_key(info.params)};
}

}  // namespace attn
