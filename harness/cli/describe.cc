// Metadata of the catalogs as JSON and text; see describe.h.
#include "harness/cli/describe.h"

#include "core/check.h"
#include "harness/sweep/key.h"

namespace attn::cli {
namespace {

struct NamedTrait {
  const char* name;
  bool Traits::*member;
};
constexpr NamedTrait kTraits[] = {
    {"exact", &Traits::exact},
    {"causal", &Traits::causal},
    {"cross", &Traits::cross},
    {"padding", &Traits::padding},
    {"linear_time", &Traits::linear_time},
    {"linear_memory", &Traits::linear_memory},
    {"random", &Traits::random},
    {"fixed_length", &Traits::fixed_length},
    {"convex", &Traits::convex},
    {"permutable", &Traits::permutable},
    {"decode", &Traits::decode},
    {"edges", &Traits::edges},
    {"rowwise", &Traits::rowwise},
    {"mixer", &Traits::mixer},
};

Json describe_all(const std::vector<ParamSpec>& params) {
  Json list = Json::array();
  for (const ParamSpec& spec : params) list.push_back(attn::cli::describe(spec));
  return list;
}

}  // namespace

Json describe(const ParamSpec& spec) {
  Json json = {{"name", spec.name},
               {"type", spec.type()},
               {"default", to_json(spec.value)},
               {"range", spec.range()},
               {"help", spec.help}};
  if (!spec.conditions.empty()) json["only_with"] = spec.condition();
  return json;
}

Json describe(const VariantInfo& info) {
  Json traits = Json::object();
  for (const NamedTrait& trait : kTraits) traits[trait.name] = info.traits.*trait.member;
  return {{"name", info.name},       {"family", info.family},
          {"summary", info.summary}, {"paper", info.paper},
          {"traits", traits},        {"cost_formula", info.cost_formula},
          {"notes", info.notes},     {"params", describe_all(info.params)}};
}

Json describe(const TaskInfo& info) {
  Json presets = Json::array();
  for (const Preset& preset : info.presets) {
    Json values = Json::object();
    for (const auto& [name, value] : preset.values) values[name] = to_json(value);
    presets.push_back({{"name", preset.name}, {"help", preset.help}, {"params", values}});
  }
  return {{"name", info.name},
          {"summary", info.summary},
          {"source", info.source},
          {"metric", info.metric},
          {"datasheet", info.datasheet},
          {"params", describe_all(info.params)},
          {"presets", presets},
          {"control", info.control.empty() ? Json(nullptr) : Json(info.control)}};
}

std::string control_text(const TaskInfo& info) {
  return fmt::format("control: {} solves this task; lift would say nothing, and is not given",
                     info.control);
}

std::string traits_text(const Traits& traits) {
  std::string text;
  for (const NamedTrait& trait : kTraits)
    if (traits.*trait.member) text += (text.empty() ? "" : ", ") + std::string(trait.name);
  return text;
}

std::string params_text(const std::vector<ParamSpec>& params) {
  if (params.empty()) return "  none\n";
  std::string text;
  for (const ParamSpec& spec : params)
    text += fmt::format("  {:<18} {:<6} default {:<10} {:<22} {}\n", spec.name, spec.type(),
                        to_string(spec.value), spec.range(),
                        spec.conditions.empty()
                            ? spec.help
                            : fmt::format("{} (only with {})", spec.help, spec.condition()));
  return text;
}

}  // namespace attn::cli
