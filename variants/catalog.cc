// The list of variants. To add a variant, add one word in CMakeLists.txt.
#include "variants/catalog.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "core/base/plugin_name.h"
#include "variants/api/forgetting.h"
#include "variants/api/stack.h"
#include "variants/api/stack_text.h"

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

const VariantInfo* listed(std::string_view name) {
  for (const VariantInfo& info : variant_list())
    if (info.name == name) return &info;
  return nullptr;
}

const VariantInfo& find_listed(std::string_view name) {
  if (const std::string_view inside = inside_paper(name); !inside.empty())
    return with_paper_block(find_listed(inside));
  if (const VariantInfo* const info = listed(name)) return *info;
  std::vector<std::string> names;
  for (const VariantInfo& info : variant_list()) names.push_back(info.name);
  throw_error(fmt::format("unknown variant '{}'{}", name, nearest_note(name, names)));
}

// "truncated[window=32]", each parameter with one value
LayerVariant layer_named(std::string_view spec) {
  const size_t bracket = std::min(spec.find('['), spec.size());
  const VariantInfo* info = &find_listed(spec.substr(0, bracket));
  std::map<std::string, ParamValue> params;
  ATTN_CHECK(bracket == spec.size() || spec.back() == ']', "'{}' does not end with ']'", spec);
  std::string_view rest = spec.substr(bracket);
  while (rest.size() > 2) {
    rest.remove_prefix(1);  // the bracket or a comma
    const std::string_view setting = rest.substr(0, rest.find_first_of(",]"));
    const size_t equals = std::min(setting.find('='), setting.size());
    const std::string name(setting.substr(0, equals));
    ATTN_CHECK(equals < setting.size(), "'{}': '{}' is not param=value", spec, setting);
    const std::string_view value = setting.substr(equals + 1);
    if (name == kBlockParam && value == "paper" && asks_for_layer(*info))
      info = &with_paper_block(*info);
    params[name] = std::string(value);  // an unknown name is refused by layer_of()
    for (const ParamSpec& param : info->params)
      if (param.name == name) params[name] = param.parse(info->name, value);
    rest.remove_prefix(setting.size());
  }
  return layer_of(*info, params);
}

const VariantInfo& stack_named(std::string_view text) {
  std::vector<LayerVariant> layers;
  for (const auto& [times, spec] : stack_parts(text))
    layers.insert(layers.end(), static_cast<size_t>(times), layer_named(spec));
  const LayerVariant found = find_stack(layers);
  ATTN_CHECK(found.params.empty(), "'{}' has equal layers: it is {}[...], and no stack", text,
             found.variant->name);
  return found.variant->is_stack() ? *found.variant : find_listed(found.variant->name);
}

}  // namespace

const std::deque<VariantInfo>& all_variants() { return variant_list(); }

const VariantInfo* variant_named(std::string_view given) {
  const std::string_view name = spelled_out(given);
  if (const VariantInfo* const info = listed(name)) return info;
  try {
    if (!inside_paper(name).empty()) return &find_listed(name);
    return is_stack_text(name) ? &stack_named(name) : nullptr;
  } catch (const Error&) {  // a layer is of no variant
    return nullptr;
  }
}

const VariantInfo& find_variant(std::string_view given) {
  const std::string_view name = spelled_out(given);
  return is_stack_text(name) ? stack_named(name) : find_listed(name);
}

std::string plain_name(std::string_view name) {
  const std::string_view inside = inside_paper(name);
  return std::string(inside.empty() ? name : inside);
}

const VariantInfo& find_variant(std::string_view name, const Params& params) {
  const VariantInfo& info = find_variant(name);
  const bool asked = params.values().contains(kBlockParam) && asks_for_layer(info);
  return asked ? with_paper_block(info) : info;
}

LayerVariant find_stack(const std::vector<LayerVariant>& layers) {
  // By their texts; an entry stays where it is, so that references to it stay valid.
  static std::map<std::string, VariantInfo> stacks;
  static std::mutex mutex;
  const std::vector<LayerVariant> period = one_period(layers);
  if (period.size() == 1) return period[0];
  const std::lock_guard lock(mutex);
  auto at = stacks.find(stack_name(period));
  if (at == stacks.end()) at = stacks.emplace(stack_name(period), stack_of(period)).first;
  return {std::shared_ptr<const VariantInfo>(std::shared_ptr<void>(), &at->second), {}};
}

const VariantInfo& with_paper_block(const VariantInfo& info) {
  // By their names; an entry stays where it is, so that references to it stay valid.
  static std::map<std::string, VariantInfo> blocks;
  static std::mutex mutex;
  if (!info.has_paper_layer() && info.lacks_block.empty()) return info;
  const VariantInfo& base = find_listed(info.name);
  const std::lock_guard lock(mutex);
  auto at = blocks.find(base.name);
  if (at == blocks.end()) at = blocks.emplace(base.name, paper_block(base)).first;
  return at->second;
}

const VariantInfo& in_block(const VariantInfo& info, std::string_view value) {
  ATTN_CHECK(value == "mixer" || value == "paper", "{}: block={} is not valid; mixer or paper",
             info.name, value);
  return value == "paper" ? with_paper_block(info) : info;
}

const VariantInfo& exact_reference() { return find_variant("full"); }

bool is_exact_with(const std::string& param, const std::string& choice) {
  const VariantInfo& exact = exact_reference();
  const std::map<std::string, ParamValue> given = {{param, choice}};
  return effective(exact.params, given) == given &&
         !forgets_of(exact, Params(exact.name, exact.params, given));
}

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
  ATTN_CHECK(!info.has_paper_layer() || asks_for_layer(info),
             "variant '{}' has a block and a parameter of its own named {}", info.name,
             kBlockParam);
  ATTN_CHECK(info.make, "variant '{}' has no `make`; make_as<Class> makes one", info.name);
  variant_files()[info.name] = file_hash;
  variant_list().push_back(std::move(info));
}

std::string variant_plugin(std::string_view name) {
  if (const auto file = variant_files().find(name); file != variant_files().end())
    return file->second;
  std::string hashes;
  if (const VariantInfo* const info = variant_named(name))
    for (const LayerVariant& layer : info->layers)
      hashes += variant_plugin(plain_name(layer.variant->name));
  return hashes;
}

}  // namespace attn
