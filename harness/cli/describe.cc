// Metadata of the catalogs as JSON and text; see describe.h.
#include "harness/cli/describe.h"

#include <algorithm>
#include <iterator>
#include <regex>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/plan/python_variants.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn::cli {
namespace {

struct NamedTrait {
  const char* name;
  bool Traits::*member;
  const char* meaning;
};
constexpr NamedTrait kTraits[] = {
    {"exact", &Traits::exact, "equals softmax attention for every input"},
    {"causal", &Traits::causal, "can hide the future"},
    {"cross", &Traits::cross, "takes keys of another length than the queries"},
    {"padding", &Traits::padding, "leaves out padded keys"},
    {"linear_time", &Traits::linear_time, "FLOPs grow linearly with the length"},
    {"linear_memory", &Traits::linear_memory, "memory grows linearly with the length"},
    {"random", &Traits::random, "draws random features or patterns, by seed"},
    {"fixed_length", &Traits::fixed_length, "is built for a longest length"},
    {"convex", &Traits::convex,
     "an output is a weighted mean of values: weights are at least 0 and sum to 1"},
    {"permutable", &Traits::permutable, "permuting the positions permutes the output"},
    {"decode", &Traits::decode, "answers one token after another from a state"},
    {"typed_cache", &Traits::typed_cache,
     "its decoder caches keys and values in the type that --kv-dtype names"},
    {"edges", &Traits::edges, "attends along the edges of a graph, where a task gives them"},
    {"rowwise", &Traits::rowwise, "answers a query by itself, whatever the other queries are"},
    {"bfloat16", &Traits::bfloat16,
     "reads bfloat16 itself; the inputs of others are widened to float32 first"},
    {"gated", &Traits::gated, "reads gates beside q, k and v, which a layer projects of its input"},
    {"nonlinear", &Traits::nonlinear, "outputs are no linear function of the values"},
    {"surrogate_gradients", &Traits::surrogate_gradients,
     "gradients of queries and keys are those of a declared surrogate, not of the forward"},
    {"distance_bias", &Traits::distance_bias,
     "takes positions that are a bias of each distance, such as alibi"},
    {"mimicry", &Traits::mimicry,
     "has a loss that fits it to the weights of softmax before training"},
    {"mixer", &Traits::mixer, "reads the layer's input itself; no queries or keys are projected"},
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
  return {{"name", info.name},
          {"provided_by", python_variant(info.name)           ? kByPython
                          : variant_plugin(info.name).empty() ? "native"
                                                              : "plugin"},
          {"family", info.family},
          {"summary", info.summary},
          {"paper", info.paper},
          {"year", year_of(info) == 0 ? Json(nullptr) : Json(year_of(info))},
          {"traits", traits},
          {"referenced", info.reference != nullptr},
          {"cost_formula", info.cost_formula},
          {"notes", info.notes},
          {"block", info.has_paper_layer() ? Json(info.paper_layer_notes()) : Json(nullptr)},
          {"params", describe_all(info.params)}};
}

Json describe(const TaskInfo& info) {
  Json presets = Json::array();
  for (const Preset& preset : info.presets) {
    Json values = Json::object();
    for (const auto& [name, value] : preset.values) values[name] = to_json(value);
    presets.push_back({{"name", preset.name}, {"help", preset.help}, {"params", values}});
  }
  return {{"name", info.name},
          {"provided_by", task_plugin(info.name).empty() ? "native" : "plugin"},
          {"summary", info.summary},
          {"source", info.source},
          {"metric", info.metric},
          {"datasheet", info.datasheet},
          {"params", describe_all(info.params_by_default())},
          {"presets", presets},
          {"control", info.control.empty() ? Json(nullptr) : Json(info.control)},
          {"solver", info.solver.empty() ? exact_reference().name : info.solver}};
}

std::string solver_text(const TaskInfo& info) {
  return fmt::format("solver: {}, which must learn a setting for its scores to be shown",
                     info.solver);
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

std::vector<std::string> trait_names() {
  std::vector<std::string> names;
  for (const NamedTrait& trait : kTraits) names.emplace_back(trait.name);
  return names;
}

bool has_trait(const Traits& traits, const std::string& name) {
  return std::any_of(std::begin(kTraits), std::end(kTraits), [&](const NamedTrait& trait) {
    return trait.name == name && traits.*trait.member;
  });
}

int64_t year_of(const VariantInfo& info) {
  // "Wang et al. 2020, arXiv:2006.04768": four digits alone; those of an identifier go on.
  static const std::regex year(R"((^|[ (])((19|20)\d\d)([ ,;)]|$))");
  std::smatch found;
  return std::regex_search(info.paper, found, year) ? std::stoll(found[2]) : 0;
}

Json meanings_of(const Traits& traits) {
  Json meanings = Json::object();
  for (const NamedTrait& trait : kTraits)
    if (traits.*trait.member) meanings[trait.name] = trait.meaning;
  return meanings;
}

std::string explained_traits(const Traits& traits) {
  std::string text;
  for (const NamedTrait& trait : kTraits)
    if (traits.*trait.member) text += fmt::format("  {:<19} {}\n", trait.name, trait.meaning);
  return text.empty() ? "  none\n" : text;
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
