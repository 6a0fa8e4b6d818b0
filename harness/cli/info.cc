// attnbench info NAME: one variant with its cost and weights, or one task with its datasheet and an
// example.
#include "harness/cli/describe.h"
#include "harness/cli/specs.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

// Shapes and costs are shown for this size, named in the output.
constexpr AttentionShape kShown = {
    .batch = 1, .heads = 4, .q_len = 1024, .kv_len = 1024, .head_dim = 64};
constexpr int64_t kShownExamples = 500;  // train and test examples behind the shortcut scores

std::unique_ptr<Attention> build_shown(const Chosen& chosen) {
  return chosen.variant->build(
      {.heads = kShown.heads, .head_dim = kShown.head_dim, .max_len = kShown.kv_len},
      chosen.params);
}

int show_variant(const Chosen& chosen, bool json) {
  const VariantInfo& info = *chosen.variant;
  const auto attention = build_shown(chosen);
  const Cost cost = attention->cost(kShown);
  if (json) {
    Json all = describe(info);
    all["weights"] = Json::array();
    for (const Weight& weight : attention->weights()) {
      Json shape = Json::array();
      for (int i = 0; i < weight.value.shape().rank(); i++) shape.push_back(weight.value.dim(i));
      all["weights"].push_back(
          {{"name", weight.name}, {"shape", shape}, {"learned", weight.learned}});
    }
    all["cost"] = {{"length", kShown.kv_len},
                   {"heads", kShown.heads},
                   {"head_dim", kShown.head_dim},
                   {"flops", cost.flops},
                   {"bytes", cost.bytes},
                   {"peak_bytes", cost.peak_bytes},
                   {"state_bytes", cost.state_bytes}};
    print(all.dump(2) + "\n");
    return kOk;
  }
  print(fmt::format("{}: {}\npaper    {}\ntraits   {}\ncost     {}\n", info.name, info.summary,
                    info.paper, traits_text(info.traits), info.cost_formula));
  print(
      fmt::format("         at length {}, {} heads of {}: {:.3g} FLOPs, {:.3g} bytes moved, {:.3g} "
                  "bytes of memory above "
                  "q, k, v, {:.3g} bytes of state to decode\n",
                  kShown.kv_len, kShown.heads, kShown.head_dim, cost.flops, cost.bytes,
                  cost.peak_bytes, cost.state_bytes));
  print("parameters\n" + params_text(info.params));
  print(fmt::format("weights ({} heads of {}, longest sequence {})\n", kShown.heads,
                    kShown.head_dim, kShown.kv_len));
  if (attention->weights().empty()) print("  none\n");
  for (const Weight& weight : attention->weights())
    print(fmt::format("  {:<18} {:<20} {}\n", weight.name, weight.value.shape().str(),
                      weight.learned ? "learned" : "drawn at random, by seed"));
  return kOk;
}

int show_task(const Chosen& chosen, bool json) {
  const TaskInfo& info = *chosen.task;
  const auto task = info.build(chosen.params);
  const TaskShape shape = task->shape();
  const std::vector<Shortcut> shortcuts = task->shortcuts(0, kShownExamples, kShownExamples);
  if (json) {
    Json all = describe(info);
    all["shape"] = {{"length", shape.length},
                    {"vocab", shape.vocab},
                    {"classes", shape.classes},
                    {"per_token", shape.per_token},
                    {"causal", shape.causal}};
    all["chance"] = task->chance();
    all["shortcuts"] = Json::object();
    for (const Shortcut& shortcut : shortcuts) all["shortcuts"][shortcut.name] = shortcut.score;
    print(all.dump(2) + "\n");
    return kOk;
  }
  print(fmt::format("{}: {}\nsource   {}\nmetric   {}, chance {:.3g}\n", info.name, info.summary,
                    info.source, info.metric, task->chance()));
  print(fmt::format("shape    length {}, {}, {} classes, a label per {}{}\n", shape.length,
                    shape.vocab ? fmt::format("vocabulary {}", shape.vocab) : "real values",
                    shape.classes, shape.per_token ? "token" : "sequence",
                    shape.causal ? ", causal" : ""));
  print(fmt::format("shortcuts, fitted on {} examples and scored on {}\n", kShownExamples,
                    kShownExamples));
  for (const Shortcut& shortcut : shortcuts)
    print(fmt::format("  {:<24} {:.3f}\n", shortcut.name, shortcut.score));
  print("parameters\n" + params_text(info.params) + "datasheet\n" + info.datasheet + "\n");
  print("example (seed 0, train, index 0)\n" + task->draw(task->example(0, Split::train, 0)) +
        "\n");
  return kOk;
}

int run(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(),
             "info needs the name of a variant or task (attnbench list shows them)");
  const Chosen chosen = choose(arguments.words()[0]);
  return chosen.variant ? show_variant(chosen, arguments.has("json"))
                        : show_task(chosen, arguments.has("json"));
}

}  // namespace

Verb info_verb() {
  return {.name = "info",
          .usage = "NAME [--json]",
          .summary = "one variant's cost and weights, or one task's datasheet and an example",
          .options = {{"json", 0, "", "print JSON"}},
          .max_words = 1,
          .run = run};
}

}  // namespace attn::cli
