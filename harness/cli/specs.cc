// One spec to one variant or task with typed parameters; see specs.h.
#include "harness/cli/specs.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "harness/plan/grammar.h"
#include "harness/plan/python_variants.h"
#include "variants/block/block.h"

namespace attn::cli {
namespace {

std::map<std::string, ParamValue> typed(const Spec& spec, const std::vector<ParamSpec>& known) {
  std::map<std::string, ParamValue> params;
  for (const Setting& setting : spec.settings) {
    const auto it = std::find_if(known.begin(), known.end(),
                                 [&](const ParamSpec& p) { return p.name == setting.name; });
    if (it == known.end())
      Params(spec.name, known, {{setting.name, setting.values.at(0)}});  // throws, with the nearest
    ATTN_CHECK(setting.values.size() == 1, "{}: {} takes one value here, got {}", spec.name,
               setting.name, join(setting.values));
    params[setting.name] = it->parse(spec.name, setting.values[0]);
  }
  return params;
}

template <class Infos>
const typename Infos::value_type* lookup(const Infos& list, const std::string& name,
                                         std::vector<std::string>& names) {
  for (const auto& info : list) {
    if (info.name == name) return &info;
    names.push_back(info.name);
  }
  return nullptr;
}

// Takes block=… out of the spec and returns what it says; "" where it is not there.
std::string taken_block(const VariantInfo& info, Spec& spec) {
  const auto at = std::find_if(spec.settings.begin(), spec.settings.end(),
                               [](const Setting& setting) { return setting.name == kBlockParam; });
  if (at == spec.settings.end() || !asks_for_layer(info)) return "";
  const std::string block = join(at->values);
  spec.settings.erase(at);
  return block;
}

Spec parse_single(const std::string& text) {
  Spec spec = parse_spec(text);
  ATTN_CHECK(spec.layers.empty(),
             "'{}' is a stack of layers, which `run` alone takes; name one of its variants", text);
  return spec;
}

}  // namespace

std::vector<Chosen> choose(const std::string& text) {
  Spec spec = parse_single(text);
  if (spec.name.starts_with(kPythonPrefix)) return {choose_variant(text)};
  std::vector<std::string> names;
  const VariantInfo* variant = lookup(all_variants(), spec.name, names);
  const TaskInfo* const task = lookup(all_tasks(), spec.name, names);
  if (!variant && !task)
    throw_error(
        fmt::format("unknown variant or task '{}'{}", spec.name, nearest_note(spec.name, names)));
  const std::string block = variant && !task ? taken_block(*variant, spec) : "";
  if (!block.empty()) variant = &in_block(*variant, block);
  std::vector<Chosen> found;
  std::string refusal;
  const auto offer = [&](const VariantInfo* v, const TaskInfo* t, const auto& specs) {
    try {
      found.push_back({.variant = v, .task = t, .params = typed(spec, specs), .block = block});
    } catch (const Error& error) {
      refusal += (refusal.empty() ? "" : "; as a task, ") + std::string(error.what());
    }
  };
  if (variant) offer(variant, nullptr, variant->params);
  if (task) offer(nullptr, task, task->accepted());
  if (found.empty()) throw_error(refusal);
  return found;
}

Chosen choose_variant(const std::string& text) {
  Spec spec = parse_single(text);
  const VariantInfo* info = &find_variant(catalogued(spec.name));
  const std::string block = taken_block(*info, spec);
  if (!block.empty()) info = &in_block(*info, block);
  return {.variant = info, .task = nullptr, .params = typed(spec, info->params), .block = block};
}

Chosen choose_task(const std::string& text) {
  const Spec spec = parse_spec(text);
  const TaskInfo& info = find_task(spec.name);
  return {.variant = nullptr, .task = &info, .params = typed(spec, info.accepted())};
}

}  // namespace attn::cli
