// Keys of cells; see key.h.
#include "harness/cell/key.h"

#include <type_traits>
#include <utility>

#include "core/base/check.h"
#include "harness/cell/each_axis.h"
#include "harness/measure/packed_lengths.h"
#include "variants/catalog.h"

namespace attn {
namespace {

template <class T>
ParamValue axis_value(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return std::string(name_of(value));
  else
    return value;
}

// Sets `axis` to `given`; false where `given` is of another type.
template <class T>
bool takes(const ParamValue& given, std::optional<T>& axis) {
  if constexpr (std::is_enum_v<T>) {
    const std::string* const name = std::get_if<std::string>(&given);
    if (name) axis = value_named<T>(*name);
    return name && axis;
  } else {
    if constexpr (std::is_same_v<T, double>)
      if (const auto* const whole = std::get_if<int64_t>(&given)) axis = static_cast<T>(*whole);
    if (const T* const same = std::get_if<T>(&given)) axis = *same;
    return axis.has_value();
  }
}

}  // namespace

Params defaults_in_rows(const VariantInfo& variant) {
  return Params(variant.name, variant.params).for_key(variant.params);
}

std::string plugin_text(const Plugin& plugin) {
  const std::string params = plugin.params.str();
  return params.empty() ? plugin.name : fmt::format("{}[{}]", plugin.name, params);
}

const VariantInfo& variant_of(const Plugin& plugin) {
  return find_variant(plugin.name, plugin.params);
}

const VariantInfo* known_variant(const Plugin& plugin) {
  return variant_named(plugin.name) ? &variant_of(plugin) : nullptr;
}

bool has_paper_block(const Plugin& plugin) {
  const VariantInfo* const known = known_variant(plugin);
  return known && plain_name(known->name) != known->name;
}

std::optional<int64_t> key_heads(const Axes& axes) {
  return axes.kv_heads ? axes.kv_heads : axes.heads;
}

std::vector<std::pair<std::string, ParamValue>> named_values(const Axes& axes) {
  std::vector<std::pair<std::string, ParamValue>> values;
  each_axis(axes, [&](const char* name, const auto& value) {
    if (value) values.emplace_back(name, axis_value(*value));
  });
  return values;
}

void set_axis(Axes& axes, const std::string& name, const ParamValue& value) {
  bool is_known = false;
  each_axis(axes, [&](const char* other, auto& axis) {
    if (name != other) return;
    is_known = true;
    axis.reset();
    ATTN_CHECK(takes(value, axis), "axis {}={} is of another type", name, to_string(value));
  });
  ATTN_CHECK(is_known, "unknown axis '{}'", name);
}

std::vector<Plugin> variants_of(const CellKey& key) {
  const VariantInfo& info = variant_of(key.variant);
  if (!info.is_stack()) return {key.variant};
  std::vector<Plugin> all;
  for (const auto& [variant, params] : info.layers)
    all.push_back({plain_name(variant->name), Params(variant->name, variant->params, params)});
  return all;
}

bool reads_model(const CellKey& key) {
  return key.measure == Measure::fidelity && key.axes.input && is_captured(*key.axes.input);
}

CellKey training_behind(const CellKey& key) {
  const VariantInfo& exact = exact_reference();
  CellKey training;
  training.measure = Measure::accuracy;
  training.variant = {exact.name, defaults_in_rows(exact)};
  training.task = key.task;
  training.training = key.training;
  training.axes.length = key.axes.length;
  training.axes.causal = key.axes.causal;
  training.axes.threads = key.axes.threads;
  training.axes.seed = key.axes.seed;
  training.source = key.source;
  training.source.variant = std::exchange(training.source.exact, "");
  return training;
}

WorkloadSpec workload_of(const CellKey& key) {
  const Axes& axes = key.axes;
  WorkloadSpec spec;
  spec.variant = &variant_of(key.variant);
  spec.params = key.variant.params.values();
  spec.length = axes.length.value();
  spec.batch = axes.batch.value_or(1);
  spec.heads = axes.heads.value();
  spec.kv_heads = axes.kv_heads.value_or(0);
  spec.head_dim = axes.head_dim.value();
  spec.dtype = axes.dtype.value_or(Dtype::float32);
  spec.cache = axes.kv_dtype.value_or(CacheType::float32);
  spec.mode = axes.mode.value_or(Mode::forward);
  if (axes.workload) spec.served = parse_mixed_batch(*axes.workload);
  spec.scope = axes.scope.value_or(ScopeKind::attention);
  spec.layers = axes.layers.value_or(kModelLayers);
  spec.causal = axes.causal.value();
  spec.threads = static_cast<int>(axes.threads.value());
  spec.seed = static_cast<uint64_t>(axes.seed.value());
  if (axes.packed) spec.packed = packed_lengths(*axes.packed, spec.batch, spec.length, spec.seed);
  return spec;
}

}  // namespace attn
