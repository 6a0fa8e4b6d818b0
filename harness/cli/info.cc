// attnbench info NAME: one variant with its cost and weights, or one task with its datasheet and an
// example.
#include <algorithm>

#include "harness/check/contract.h"
#include "harness/cli/datasheet.h"
#include "harness/cli/describe.h"
#include "harness/cli/specs.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/plan/python_variants.h"
#include "harness/store/fields.h"
#include "harness/train/train.h"
#include "tasks/data/png.h"
#include "variants/api/counted_cost.h"

namespace attn::cli {
namespace {

// Shapes and costs are shown for this size, named in the output.
constexpr AttentionShape kShown = {
    .batch = 1, .heads = 4, .q_len = 1024, .kv_len = 1024, .head_dim = 64};

std::unique_ptr<Attention> build_shown(const Chosen& chosen) {
  return chosen.variant->build(
      {.heads = kShown.heads, .head_dim = kShown.head_dim, .max_len = kShown.kv_len},
      chosen.params);
}

// The figures for kShown: by formula or, where none is declared, as counted; nullopt is unknown.
struct ShownCost {
  bool declared = false;
  std::optional<double> flops, bytes, peak_bytes, state_bytes;
};

Json cost_json(const ShownCost& cost) {
  return {{"length", kShown.kv_len},
          {"heads", kShown.heads},
          {"head_dim", kShown.head_dim},
          {"declared", cost.declared},
          {"flops", attn::json_of(cost.flops)},
          {"bytes", attn::json_of(cost.bytes)},
          {"peak_bytes", attn::json_of(cost.peak_bytes)},
          {"state_bytes", attn::json_of(cost.state_bytes)}};
}

ShownCost cost_shown(const Chosen& chosen, const Attention& attention) {
  ShownCost cost;
  if (const std::optional<Cost> declared = attention.declared_cost(kShown)) {
    cost.declared = true;
    cost.flops = declared->flops;
    cost.bytes = declared->bytes;
    cost.peak_bytes = declared->peak_bytes;
    cost.state_bytes = declared->state_bytes;
    return cost;
  }
  const VariantInfo& info = *chosen.variant;
  if (!info.why_not(kShown, Params(info.name, info.params, chosen.params))) {
    const CountedCost counted = counted_cost(attention, kShown);
    cost.flops = counted.flops;
    cost.peak_bytes = counted.peak_bytes;
  }
  if (const auto held = held_state_bytes(info, chosen.params, kShown)) cost.state_bytes = *held;
  return cost;
}

std::string cost_line(const ShownCost& cost, bool decodes) {
  const auto figure = [](std::optional<double> value, const char* unit, const char* unknown) {
    return value ? fmt::format("{:.3g} {}", *value, unit) : std::string(unknown);
  };
  return fmt::format("         {}at length {}, {} heads of {}: {}, {}, {}, {}\n",
                     cost.declared ? "" : "measured, not declared: ", kShown.kv_len, kShown.heads,
                     kShown.head_dim, figure(cost.flops, "FLOPs", "unknown FLOPs"),
                     figure(cost.bytes, "bytes moved", "bytes moved not declared"),
                     figure(cost.peak_bytes, "bytes of memory above q, k, v", "memory unknown"),
                     decodes ? figure(cost.state_bytes, "bytes of state to decode", "state unknown")
                             : std::string("cannot decode"));
}

// The weights of a variant in Python are made there; its cost is neither declared nor known here.
Json weights_of_python(const PythonVariant& python, const Chosen& chosen) {
  const Params params(chosen.variant->name, chosen.variant->params, chosen.params);
  return answer_of_python(python, "weights",
                          {{"params", attn::json_of(params.values())},
                           {"heads", kShown.heads},
                           {"head_dim", kShown.head_dim},
                           {"max_len", kShown.kv_len}})
      .at("weights");
}

// What `check NAME` runs, in its order; `in_double`: a second time in double precision.
Json checks_json(const VariantInfo& info) {
  const std::vector<std::string> again = double_check_names(info);
  Json list = Json::array();
  for (const std::string& name : variant_check_names(info))
    list.push_back({{"name", name},
                    {"in_double", std::find(again.begin(), again.end(), name) != again.end()}});
  return list;
}

Json json_of_variant(const Chosen& chosen) {
  const VariantInfo& info = *chosen.variant;
  Json all = describe(info);
  all["promises"] = meanings_of(info.traits);
  if (const PythonVariant* const python = python_variant(info.name)) {
    all.update({{"file", python->file},
                {"hash", python->hash},
                {"python", python->python},
                {"torch", python->torch},
                {"weights", weights_of_python(*python, chosen)}});
    return all;
  }
  const auto attention = build_shown(chosen);
  Json weights = Json::array();
  for (const Weight& weight : attention->weights()) {
    Json shape = Json::array();
    for (int i = 0; i < weight.value.shape().rank(); i++) shape.push_back(weight.value.dim(i));
    weights.push_back({{"name", weight.name}, {"shape", shape}, {"learned", weight.learned}});
  }
  Json gates = Json::array();
  for (const GateInput& gate : attention->gates())
    gates.push_back(
        {{"name", gate.name}, {"width", gate.width}, {"rank", gate.rank}, {"help", gate.help}});
  all.update({{"weights", weights},
              {"gates", gates},
              {"checks", checks_json(info)},
              {"cost", cost_json(cost_shown(chosen, *attention))}});
  return all;
}

void show_python(const PythonVariant& python, const Chosen& chosen) {
  const VariantInfo& info = *chosen.variant;
  const Json weights = weights_of_python(python, chosen);
  print(fmt::format("{}: {}\nfile     {}, {} (Python {}, torch {})\n", info.name, info.summary,
                    python.file, python.attribute, python.python, python.torch));
  print("traits\n" + explained_traits(info.traits));
  print("parameters\n" + params_text(info.params));
  print(fmt::format("weights ({} heads of {}, longest sequence {})\n", kShown.heads,
                    kShown.head_dim, kShown.kv_len));
  if (weights.empty()) print("  none\n");
  for (const Json& weight : weights)
    print(fmt::format("  {:<18} {:<20} {}\n", weight.at("name").get<std::string>(),
                      weight.at("shape").dump(),
                      weight.at("learned").get<bool>() ? "learned" : "not learned"));
}

void show_variant(const Chosen& chosen) {
  const VariantInfo& info = *chosen.variant;
  if (const PythonVariant* const python = python_variant(info.name))
    return show_python(*python, chosen);
  const auto attention = build_shown(chosen);
  const ShownCost cost = cost_shown(chosen, *attention);
  print(fmt::format("{}: {}\npaper    {}\ncost     {}\n", info.name, info.summary, info.paper,
                    info.cost_formula.empty() ? "no formula" : info.cost_formula));
  print(cost_line(cost, info.traits.decode));
  print("traits\n" + explained_traits(info.traits));
  if (!info.reference)
    print(
        "unreferenced: declares no reference (VariantInfo::reference) for `check` to compare "
        "with\n");
  for (const std::string& note : info.notes) print(fmt::format("note     {}\n", note));
  for (const std::string& note : info.paper_layer_notes())
    print(fmt::format("block    --block paper: {}\n", note));
  if (!info.lacks_block.empty())
    print(fmt::format("block    --block paper cannot run: {}\n", info.lacks_block));
  print("parameters\n" + params_text(info.params));
  if (!attention->gates().empty())
    print(fmt::format("gates ([batch, heads, len, width]; {} heads of {})\n", kShown.heads,
                      kShown.head_dim));
  for (const GateInput& gate : attention->gates())
    print(fmt::format(
        "  {:<18} width {}, {}: {}\n", gate.name, gate.width,
        gate.rank > 0 ? fmt::format("a projection of rank {}", gate.rank) : "one projection",
        gate.help));
  print(fmt::format("weights ({} heads of {}, longest sequence {})\n", kShown.heads,
                    kShown.head_dim, kShown.kv_len));
  if (attention->weights().empty()) print("  none\n");
  for (const Weight& weight : attention->weights())
    print(fmt::format("  {:<18} {:<20} {}\n", weight.name, weight.value.shape().str(),
                      weight.learned ? "learned"
                      : weight.moved ? "drawn at random, by seed; a training may move it"
                                     : "drawn at random, by seed"));
}

void write_picture(const Chosen& chosen, const std::string& path) {
  const auto task = chosen.task->build(chosen.params);
  const Example example = task->example(0, Split::train, 0);
  const int64_t width = task->picture_width();
  ATTN_CHECK(width > 0, "{} has no picture; its examples are not images", chosen.task->name);
  const std::vector<uint8_t> pixels = task->picture(example);
  require_writable(path);
  const int64_t height = static_cast<int64_t>(pixels.size()) / width;
  data::write_grey_png(path, {width, height, pixels});
}

void show_task(const Chosen& chosen, const Arguments& arguments) {
  if (arguments.has("picture")) return write_picture(chosen, arguments.get("picture"));
  const Datasheet sheet = datasheet_of(*chosen.task, chosen.params);
  print(arguments.has("markdown") ? markdown_of(sheet) : plain_text_of(sheet));
}

// One object, whatever the name is of: where it is of a variant and a task, that of the variant,
// whose member `task` is that of the task.
Json json_of_all(const std::vector<Chosen>& chosen) {
  std::optional<Json> variant, task;
  for (const Chosen& one : chosen)
    if (one.variant)
      variant = json_of_variant(one);
    else
      task = json_of(datasheet_of(*one.task, one.params));
  if (variant && task) (*variant)["task"] = *task;
  return variant ? *variant : task.value();
}

// The settings of run --train.
void show_training(bool json) {
  if (!json) {
    print("training: the settings of run --train, one recipe for all variants\n");
    print(params_text(training_params()));
    return;
  }
  Json list = Json::array();
  for (const ParamSpec& spec : training_params()) list.push_back(describe(spec));
  print(Json({{"name", "training"}, {"params", list}}).dump(2) + "\n");
}

bool of_a_task(const Arguments& arguments) {
  return arguments.has("picture") || arguments.has("markdown");
}

int run_info(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(),
             "info needs the name of a variant or task (attnbench list shows them), or training");
  ATTN_CHECK(arguments.has("json") + arguments.has("markdown") + arguments.has("picture") <= 1,
             "--json, --markdown and --picture exclude each other");
  if (arguments.words()[0] == "tasks" && arguments.has("markdown")) {
    print(tasks_page());
    return kOk;
  }
  if (arguments.words()[0] == "training") {
    ATTN_CHECK(!of_a_task(arguments), "--picture and --markdown are for tasks; not for training");
    show_training(arguments.has("json"));
    return kOk;
  }
  const bool of_tasks = of_a_task(arguments);
  std::vector<Chosen> chosen = choose(arguments.words()[0]);
  if (of_tasks) std::erase_if(chosen, [](const Chosen& one) { return !one.task; });
  ATTN_CHECK(!chosen.empty(), "--picture and --markdown are for tasks; {} is a variant",
             arguments.words()[0]);
  if (arguments.has("json")) return print(json_of_all(chosen).dump(2) + "\n"), kOk;
  if (chosen.size() > 1) warn(fmt::format("{} names a variant and a task\n", arguments.words()[0]));
  for (const Chosen& one : chosen)
    if (one.variant)
      show_variant(one);
    else
      show_task(one, arguments);
  return kOk;
}

}  // namespace

Verb info_verb() {
  return {.name = "info",
          .usage = "NAME|training [--json | --markdown | --picture FILE.png]",
          .summary =
              "one variant's cost and weights, one task's datasheet and an example, or `training`",
          .options = {{"json", 0, "",
                       "print JSON: one object; of a variant and a task of one name the variant's, "
                       "with the task's as its member `task`"},
                      {"picture", 0, "FILE.png", "image tasks: write the first example instead"},
                      {"markdown", 0, "", "a task, or `tasks` for all: as in results/tasks.md"},
                      plugin_option()},
          .max_words = 1,
          .run = run_info};
}

}  // namespace attn::cli
