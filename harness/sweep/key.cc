// Keys to JSON and back; see key.h.
#include "harness/sweep/key.h"

#include "core/base/check.h"
#include "variants/catalog.h"

namespace attn {
namespace {

Mode mode_of(const std::string& name) {
  for (const Mode mode : {Mode::forward, Mode::train, Mode::decode})
    if (name == to_string(mode)) return mode;
  throw_error(fmt::format("unknown mode '{}'", name));
}

ScopeKind scope_of(const std::string& name) {
  for (const ScopeKind scope : {ScopeKind::attention, ScopeKind::layer, ScopeKind::model})
    if (name == to_string(scope)) return scope;
  throw_error(fmt::format("unknown scope '{}'", name));
}

}  // namespace

Json to_json(const ParamValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Json to_json(const Params& params) {
  Json object = Json::object();
  for (const auto& [name, value] : params.values()) object[name] = to_json(value);
  return object;
}

std::map<std::string, ParamValue> params_of(const Json& object) {
  std::map<std::string, ParamValue> params;
  for (const auto& [name, value] : object.items()) {
    if (value.is_boolean())
      params[name] = value.get<bool>();
    else if (value.is_number_integer())
      params[name] = value.get<int64_t>();
    else if (value.is_number())
      params[name] = value.get<double>();
    else
      params[name] = value.get<std::string>();
  }
  return params;
}

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

Json plugin_json(const std::string& name, const Params& params) {
  return {{"name", name}, {"params", to_json(params)}};
}

std::string plugin_text(const Json& plugin) {
  std::vector<std::string> words;
  for (const auto& [name, value] : plugin["params"].items())
    words.push_back(name + "=" + text_of(value));
  const std::string name = plugin["name"];
  return words.empty() ? name : fmt::format("{}[{}]", name, join(words));
}

WorkloadSpec workload_of(const Json& key) {
  const Json& axes = key["axes"];
  WorkloadSpec spec;
  spec.variant = &find_variant(key["variant"]["name"].get<std::string>());
  spec.params = params_of(key["variant"]["params"]);
  spec.length = axes["length"];
  spec.batch = axes["batch"];
  spec.heads = axes["heads"];
  spec.head_dim = axes["head_dim"];
  spec.mode = mode_of(axes.value("mode", "forward"));
  spec.scope = scope_of(axes.value("scope", "attention"));
  spec.causal = axes["causal"];
  spec.threads = axes["threads"];
  spec.seed = axes["seed"];
  return spec;
}

Json group_of(const Json& key) {
  Json group = key;
  group.erase("variant");
  group.erase("source");
  return group;
}

}  // namespace attn
