// attnbench list: what there is, and the machine that it runs on, for people and (--json) for
// scripts, completion and plots.
#include "harness/cli/describe.h"
#include "harness/cli/machine.h"
#include "harness/cli/mixer_coverage.h"
#include "harness/cli/sweep_request.h"
#include "harness/cli/terminal.h"
#include "harness/cli/variant_filter.h"
#include "harness/cli/verbs.h"
#include "harness/plan/profiles.h"
#include "harness/plan/python_variants.h"
#include "harness/plan/shapes.h"
#include "harness/store/fields.h"
#include "harness/store/user_cache.h"
#include "tasks/catalog.h"
#include "variants/catalog.h"

namespace attn::cli {
namespace {

std::string param_line(const std::vector<ParamSpec>& params) {
  std::string text;
  for (const ParamSpec& spec : params)
    text += (text.empty() ? "" : ", ") + spec.name + "=" + to_string(spec.value);
  return text.empty() ? "none" : text;
}

std::string origin_text(const VariantInfo& info) {
  if (const PythonVariant* const python = python_variant(info.name))
    return fmt::format(", of {}", python->file);
  return variant_plugin(info.name).empty() ? "" : ", of a plug-in";
}

// Lines that name something and tell it: one each, on a terminal no longer than that is wide.
class Lines {
 public:
  void head(const std::string& text) { print(text + "\n"); }
  void entry(const std::string& name, size_t name_width, const std::string& text) {
    const std::string line = fmt::format("  {:<{}} {}", name, name_width, text);
    const std::string shown = cut_to(line, width_);
    was_cut_ |= shown != line;
    print(shown + "\n");
  }
  ~Lines() {
    if (was_cut_) warn("lines are cut to this terminal's width; attnbench info NAME tells all\n");
  }

 private:
  const size_t width_ =
      is_terminal(Stream::out) ? terminal_width(Stream::out, 80) : std::string::npos;
  bool was_cut_ = false;
};

template <class Names>
size_t longest(const Names& names) {
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  return width;
}

void list_variants(const std::vector<const VariantInfo*>& variants, Lines& lines) {
  lines.head("variants");
  std::vector<std::string> names;
  for (const VariantInfo* const info : variants) names.push_back(info->name);
  for (const std::string& family : all_families()) {
    bool headed = false;
    for (const VariantInfo* const info : variants) {
      if (info->family != family) continue;
      if (!headed) lines.head(" " + family);
      headed = true;
      lines.entry(info->name, longest(names),
                  fmt::format("{}; {}; {}; parameters: {}", info->summary, info->paper,
                              traits_text(info->traits) +
                                  (info->reference ? "" : ", unreferenced") + origin_text(*info),
                              param_line(info->params)));
    }
  }
}

void list_tasks(Lines& lines) {
  lines.head("tasks");
  std::vector<std::string> names;
  for (const TaskInfo& info : all_tasks()) names.push_back(info.name);
  for (const TaskInfo& info : all_tasks())
    lines.entry(info.name, longest(names),
                fmt::format("{}; {}{}; parameters: {}", info.summary,
                            info.control.empty() ? "" : control_text(info) + "; ", info.source,
                            param_line(info.params_by_default())));
}

void list_profiles(Lines& lines) {
  lines.head("profiles");
  for (const ProfileInfo& info : all_profiles())
    lines.entry(info.name, 12, fmt::format("{} (version {})", info.summary, info.version));
}

std::string layers_text(const ModelShape& shape) {
  std::vector<std::string> texts;
  for (const ShapeLayer& layer : shape.layers)
    texts.push_back(fmt::format(
        "{} x {}: {} heads{} of {}", layer.count, layer.variant, layer.heads,
        layer.kv_heads > 0 ? fmt::format(" over {}", layer.kv_heads) : "", layer.head_dim));
  return join(texts, " + ");
}

void list_shapes(Lines& lines) {
  lines.head("shapes");
  std::vector<std::string> names;
  for (const ModelShape& shape : all_shapes()) names.push_back(shape.name);
  for (const ModelShape& shape : all_shapes())
    lines.entry(shape.name, longest(names),
                fmt::format("{}; {}{}", layers_text(shape), shape.source,
                            shape.note.empty() ? "" : "; " + shape.note));
}

Json shape_json(const ModelShape& shape) {
  Json layers = Json::array();
  for (const ShapeLayer& layer : shape.layers)
    layers.push_back({{"count", layer.count},
                      {"variant", layer.variant},
                      {"heads", layer.heads},
                      {"kv_heads", layer.own_kv_heads()},
                      {"head_dim", layer.head_dim}});
  return {{"name", shape.name}, {"source", shape.source}, {"note", shape.note}, {"layers", layers}};
}

Json profile_json(const ProfileInfo& info) {
  return {{"name", info.name}, {"version", info.version}, {"summary", info.summary}};
}

template <class Infos, class Describe>
std::vector<Json> described(const Infos& infos, Describe describe_one) {
  std::vector<Json> list;
  for (const auto& info : infos) list.push_back(describe_one(info));
  return list;
}

Json as_json(const std::vector<const VariantInfo*>* variants, bool tasks, bool profiles,
             bool shapes) {
  JsonWriter all;
  const auto json = [](const auto& info) { return describe(info); };
  if (variants)
    all("variants", described(*variants, [&](const auto* info) { return json(*info); }));
  if (tasks) all("tasks", described(all_tasks(), json));
  if (profiles) all("profiles", described(all_profiles(), profile_json));
  if (shapes) all("shapes", described(all_shapes(), shape_json));
  return std::move(all.object);
}

// What a file of Python holds that can be a variant.
void list_file(const std::string& what, bool json) {
  Json list = Json::array();
  for (const std::string& name : load_python_file(what)) {
    const VariantInfo& info = find_variant(name);
    const std::string spec = python_variant(name)->spec();
    Json all = describe(info);
    all["spec"] = spec;
    list.push_back(std::move(all));
    if (!json)
      print(fmt::format("{}\n  {}\n  {}; parameters: {}\n", spec, info.summary,
                        traits_text(info.traits), param_line(info.params)));
  }
  if (json) print(Json{{"variants", list}}.dump(2) + "\n");
}

int run_list(const Arguments& arguments) {
  const VariantFilter filter(arguments);
  const std::string what = !arguments.words().empty() ? arguments.words()[0]
                           : filter.is_empty()        ? "all"
                                                      : "variants";
  ATTN_CHECK(filter.is_empty() || what == "variants",
             "--family, --trait and --year choose variants: list variants, not list {}", what);
  if (arguments.has("show")) {
    ATTN_CHECK(what == "profiles" && !arguments.has("json"),
               "--show {0} prints a profile's sweep file: list profiles --show {0}",
               arguments.get("show"));
    print(find_profile(arguments.get("show")).text);
    return kOk;
  }
  if (what == "machine") {  // by name alone: what there is does not depend on the machine
    const Machine machine = this_machine(UserCache::default_file(kNoiseFile));
    print(arguments.has("json") ? Json{{"machine", machine_json(machine)}}.dump(2) + "\n"
                                : machine_text(machine));
    return kOk;
  }
  if (what.starts_with(kPythonPrefix)) {
    list_file(what, arguments.has("json"));
    return kOk;
  }
  if (arguments.has("coverage")) {
    ATTN_CHECK(what == "all", "--coverage lists the mixers of libraries alone, not {}", what);
    print(arguments.has("json") ? Json{{"coverage", mixer_coverage_json()}}.dump(2) + "\n"
                                : mixer_coverage_text());
    return kOk;
  }
  const bool variants = what == "all" || what == "variants";
  const bool tasks = what == "all" || what == "tasks";
  const bool profiles = what == "all" || what == "profiles";
  const bool shapes = what == "all" || what == "shapes";
  ATTN_CHECK(
      variants || tasks || profiles || shapes,
      "cannot list '{}'; expected variants, tasks, profiles, shapes, machine or python:FILE.py",
      what);
  const std::vector<const VariantInfo*> found = filter.matching();
  if (found.empty()) {
    warn("no variant has all of these; `attnbench list variants` shows all of them\n");
    return kNothingMatched;
  }
  if (arguments.has("json")) {
    print(as_json(variants ? &found : nullptr, tasks, profiles, shapes).dump(2) + "\n");
    return kOk;
  }
  Lines lines;
  if (variants) list_variants(found, lines);
  if (tasks) list_tasks(lines);
  if (profiles) list_profiles(lines);
  if (shapes) list_shapes(lines);
  return kOk;
}

std::vector<Option> list_options() {
  std::vector<Option> options = {
      {"json", 0, "", "print JSON"},
      {"coverage", 0, "",
       "the mixers that popular libraries ship, and the variant here or the reason why none"},
      {"show", 0, "NAME", "print the sweep file of a profile, to run or to change"}};
  for (Option& option : variant_filter_options()) options.push_back(std::move(option));
  options.push_back(plugin_option());
  return options;
}

}  // namespace

Verb list_verb() {
  return {.name = "list",
          .usage =
              "[variants|tasks|profiles|shapes|machine|python:FILE.py] [--json] [--show NAME] "
              "[--coverage]",
          .summary = "what there is, with traits, typed parameters and papers; the machine",
          .options = list_options(),
          .max_words = 1,
          .run = run_list};
}

}  // namespace attn::cli
