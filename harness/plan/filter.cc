// Texts of conditions become typed values once; see filter.h.
#include "harness/plan/filter.h"

#include <algorithm>

#include "core/base/check.h"
#include "harness/plan/python_variants.h"
#include "harness/plan/typed_choice.h"
#include "harness/train/train.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn {
namespace {

std::vector<ParamValue> typed_values(const std::string& owner, const std::vector<ParamSpec>& specs,
                                     const Setting& setting) {
  std::vector<ParamValue> values;
  for (const std::string& text : setting.values) {
    auto typed = typed_choice(owner, specs, {{setting.name, text}});
    static_cast<void>(Params(owner, specs, effective(specs, typed)));  // refuses an unknown name
    values.push_back(std::move(typed.at(setting.name)));
  }
  return values;
}

std::map<std::string, ParamValue> left_out(const std::vector<ParamSpec>& specs) {
  std::map<std::string, ParamValue> values;
  for (const ParamSpec& spec : specs)
    if (spec.is_later) values.emplace(spec.name, spec.value);
  return values;
}

}  // namespace

Filter::Typed Filter::typed_condition(const Condition& condition) {
  Typed typed{.condition = condition, .variants = {}, .tasks = {}, .training = {}};
  for (const Spec& spec : condition.variants) {
    const VariantInfo& info = find_variant(catalogued(spec.name));
    Wanted& wanted = typed.variants.emplace_back(Wanted{info.name, {}, left_out(info.params)});
    for (const Setting& setting : spec.settings) {
      const bool of_layer =
          setting.name == kBlockParam && info.has_paper_layer() && asks_for_layer(info);
      const VariantInfo& of = of_layer ? with_paper_block(info) : info;
      wanted.params.emplace_back(setting.name, typed_values(info.name, of.params, setting));
    }
  }
  for (const Spec& spec : condition.tasks) {
    const TaskInfo& info = find_task(spec.name);
    Wanted& wanted = typed.tasks.emplace_back(Wanted{spec.name, {}, left_out(info.params)});
    for (const Setting& setting : spec.settings) {
      auto values = typed_values(info.name, info.accepted(), setting);
      if (setting.name != "preset") {
        wanted.params.emplace_back(setting.name, std::move(values));
        continue;
      }
      // A cell holds the parameters of a preset, not its name.
      ATTN_CHECK(values.size() == 1, "{}: a condition names one preset, not {}", spec.name,
                 join(setting.values));
      const Params level = info.resolve({{"preset", values[0]}});
      for (const auto& [name, value] : level.values())
        wanted.params.emplace_back(name, std::vector<ParamValue>{value});
    }
  }
  for (const Setting& setting : condition.training)
    typed.training.params.emplace_back(setting.name,
                                       typed_values("training", training_params(), setting));
  return typed;
}

Filter::Filter(const Rules& rules) {
  for (const Condition& condition : rules.include) include_.push_back(typed_condition(condition));
  for (const Condition& condition : rules.exclude) exclude_.push_back(typed_condition(condition));
}

bool Filter::has_params(const Wanted& wanted, const Params& params) {
  return std::all_of(wanted.params.begin(), wanted.params.end(), [&](const auto& param) {
    const auto& [name, values] = param;
    auto found = params.values().find(name);
    if (found == params.values().end()) {
      found = wanted.at_default.find(name);
      if (found == wanted.at_default.end()) return false;
    }
    return std::find(values.begin(), values.end(), found->second) != values.end();
  });
}

bool Filter::is_wanted(const std::vector<Wanted>& any, const Plugin& plugin) {
  return std::any_of(any.begin(), any.end(), [&](const Wanted& wanted) {
    return wanted.name == plugin.name && has_params(wanted, plugin.params);
  });
}

bool Filter::matches(const Typed& typed, const CellKey& key) {
  const Condition& condition = typed.condition;
  const auto& measures = condition.measures;
  if (!measures.empty() &&
      std::find(measures.begin(), measures.end(), key.measure) == measures.end())
    return false;
  if (!typed.variants.empty() && !is_wanted(typed.variants, key.variant)) return false;
  if (!typed.tasks.empty() && !(key.task && is_wanted(typed.tasks, *key.task))) return false;
  if (!typed.training.params.empty() &&
      !(key.training && has_params(typed.training, *key.training)))
    return false;
  if (condition.axes.empty()) return true;
  Axes axes = key.axes;
  axes.kv_heads = key_heads(axes);  // a condition on kv_heads is one on every cell with heads
  if (axes.scope == ScopeKind::model) axes.layers = axes.layers.value_or(kModelLayers);
  if (axes.heads && !axes.dtype) axes.dtype = Dtype::float32;  // and one on dtype too
  const bool is_cached = key.measure == Measure::fidelity || (axes.mode && decodes(*axes.mode));
  if (is_cached && !axes.kv_dtype) axes.kv_dtype = CacheType::float32;
  const auto values = named_values(axes);
  return std::all_of(condition.axes.begin(), condition.axes.end(), [&](const auto& wanted) {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& axis) { return axis.first == wanted.first; });
    return found != values.end() && fits(wanted.second, found->second);
  });
}

bool Filter::matches_any(const std::vector<Typed>& conditions, const CellKey& key) {
  return std::any_of(conditions.begin(), conditions.end(),
                     [&](const Typed& typed) { return matches(typed, key); });
}

bool Filter::keeps(const CellKey& key) const {
  return (include_.empty() || matches_any(include_, key)) && !matches_any(exclude_, key);
}

}  // namespace attn
