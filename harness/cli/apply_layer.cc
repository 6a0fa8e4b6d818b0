// Reads rows and weights, runs a layer without norm, residual and feed-forward on them and writes
// its output; see apply_layer.h.
#include "harness/cli/apply_layer.h"

#include <fmt/ranges.h>

#include "harness/cli/apply_inputs.h"
#include "harness/cli/apply_run.h"
#include "harness/cli/specs.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

// SPEC may name the block itself, "mamba2[block=paper]".
Chosen choose_layer(const Arguments& arguments) {
  const std::string spec = arguments.get("variant");
  Chosen chosen = choose_variant(spec);
  if (!arguments.has("block")) return chosen;
  const std::string block = arguments.one_of("block", {"mixer", "paper"});
  ATTN_CHECK(chosen.block.empty() || chosen.block == block, "--block {} contradicts --variant {}",
             block, spec);
  if (chosen.block.empty()) chosen.variant = &in_block(*chosen.variant, block);
  return chosen;
}

int64_t heads_of(const Arguments& arguments, const Array& x) {
  ATTN_CHECK(arguments.has("heads"), "apply --scope layer needs --heads N");
  const int64_t width = x.shape[2], heads = arguments.integer("heads", 1, 1, width);
  ATTN_CHECK(width % heads == 0, "--heads {}: the width {} of --x is no multiple of it", heads,
             width);
  return heads;
}

std::string listed(const std::vector<attn_apply::LayerWeight>& weights) {
  std::string text;
  for (const attn_apply::LayerWeight& weight : weights)
    text += fmt::format("  {:<24} {:<20} {}\n", weight.name,
                        fmt::format("[{}]", fmt::join(weight.shape, ", ")),
                        weight.learned ? "learned" : "drawn at random, by seed");
  return text.empty() ? "  none\n" : text;
}

// Names the weights that were not given: they are drawn at random, which the output does not show.
std::string drawn_text(const std::vector<attn_apply::LayerWeight>& weights,
                       const attn_apply::LayerRequest& request) {
  std::vector<std::string> drawn;
  for (const attn_apply::LayerWeight& weight : weights)
    if (!request.weights.contains(weight.name)) drawn.push_back(weight.name);
  const std::string set =
      fmt::format("weights: {} of {} set", weights.size() - drawn.size(), weights.size());
  return drawn.empty() ? set + "\n"
                       : fmt::format("{}; as they start, by seed {}: {}\n", set, request.seed,
                                     fmt::join(drawn, ", "));
}

}  // namespace

void require_options_of_scope(const Arguments& arguments, bool of_layer) {
  if (of_layer) {
    for (const char* const option : {"q", "k", "v", "prompt", "seen", "grad-q", "grad-k", "grad-v"})
      ATTN_CHECK(!arguments.has(option), "--{} is of --scope attention; a layer reads --x", option);
    for (const char* const option : {"input", "grad-input"})
      ATTN_CHECK(!arguments.has(option),
                 "--{} is of --scope attention; a layer projects its gates (--set)", option);
    return;
  }
  for (const char* const option : {"x", "heads", "block", "list-weights", "grad-x"})
    ATTN_CHECK(!arguments.has(option), "--{} is of a layer; add --scope layer", option);
}

int apply_layer(const Arguments& arguments) {
  const Chosen chosen = choose_layer(arguments);
  const LayerInputs in = read_layer_inputs(arguments);
  const std::vector<int64_t>& shape = in.x.shape;
  const int64_t heads = heads_of(arguments, in.x);
  attn_apply::LayerRequest request = {
      .variant = chosen.variant->name,
      .params = chosen.params,
      .x = {shape, in.x.values},
      .heads = heads,
      .causal = arguments.has("causal"),
      .kv_lengths = in.kv_lengths,
      .weights = read_named(arguments, "set"),
      .seed = static_cast<uint64_t>(arguments.integer("seed", 0, 0, INT64_MAX)),
      .grad_out = {}};
  const VariantInfo& info = *chosen.variant;
  require_runnable(info, Params(info.name, info.params, chosen.params),
                   {shape[0], heads, shape[1], shape[1], shape[2] / heads, request.causal});
  const std::vector<attn_apply::LayerWeight> weights =
      answered([&] { return attn_apply::layer_weights(request); });
  if (arguments.has("list-weights")) {
    print(fmt::format("weights of {} (width {}, {} heads, longest sequence {})\n{}",
                      chosen.variant->name, shape[2], heads, shape[1], listed(weights)));
    return kOk;
  }
  ATTN_CHECK(arguments.has("out"), "apply needs --out FILE.npy");
  ATTN_CHECK(arguments.has("grad-out") == arguments.has("grad-x"),
             "--grad-out and --grad-x need each other");
  if (arguments.has("grad-out")) {
    const Array grad = read_rows_array(arguments, "grad-out");
    require_finite("grad-out", arguments.get("grad-out"), grad);
    require_same(grad, "grad-out", in.x, "x", {0, 1, 2});
    request.grad_out = {grad.shape, grad.values};
  }
  require_outputs(arguments, {"out", "grad-x"});
  const attn_apply::LayerOutput output = answered([&] {
    return in.x.type == "<f4" ? attn_apply::layer_float(request)
                              : attn_apply::layer_double(request);
  });
  require_finite_result("out", output.out, in.x.type);
  require_finite_result("grad-x", output.grad_x, in.x.type);
  NpyFiles files;
  files.add(arguments.get("out"), {shape, output.out, in.x.type});
  if (arguments.has("grad-x"))
    files.add(arguments.get("grad-x"), {shape, output.grad_x, in.x.type});
  files.put();
  print(drawn_text(weights, request));
  return kOk;
}

}  // namespace attn::cli
