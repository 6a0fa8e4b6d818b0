// attnbench apply: one variant on the user's own arrays, with gradients and the user's own weights
// on request.
#include <algorithm>
#include <cmath>

#include "harness/cli/apply_inputs.h"
#include "harness/cli/apply_layer.h"
#include "harness/cli/apply_run.h"
#include "harness/cli/npy.h"
#include "harness/cli/specs.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/measure/fidelity.h"
#include "variants/api/forgetting.h"

namespace attn::cli {
namespace {

// ‖out − exact‖ / ‖exact‖, Frobenius.
double relative_error(const std::vector<double>& out, const std::vector<double>& exact) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < out.size(); i++) {
    error += (out[i] - exact[i]) * (out[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

struct Result {
  const char* option;
  const Array* like;  // of its shape
  const std::vector<double>* values;
};

// What is given and not read: its shape counts alone.
void tell_unread(const Arguments& arguments, const std::string& variant,
                 const VariantInfo::Reads& read) {
  std::string what, options;
  const auto add = [&](bool is_read, const char* option, const char* name) {
    if (is_read || !arguments.has(option)) return;
    what += (what.empty() ? "" : " and ") + std::string(name);
    options += fmt::format("{}--{}", options.empty() ? "" : " and ", option);
  };
  add(read.queries, "q", "queries");
  add(read.keys, "k", "keys");
  if (!what.empty())
    warn(fmt::format("{} reads no {}: of {} the shape alone counts\n", variant, what, options));
}

attn_apply::Request request_of(const Arguments& arguments, const Chosen& chosen,
                               const ApplyInputs& in) {
  const std::optional<int64_t> prompt = read_prompt(arguments, in);
  return {.variant = chosen.variant->name,
          .params = chosen.params,
          .q = {in.q.shape, in.q.values},
          .k = {in.k.shape, in.k.values},
          .v = {in.v.shape, in.v.values},
          .causal = prompt || arguments.has("causal"),
          .prompt = prompt,
          .tells_seen = arguments.has("seen"),
          .kv_lengths = in.kv_lengths,
          .gates = read_named(arguments, "input", in.kv_lengths),
          .weights = read_named(arguments, "set"),
          .seed = static_cast<uint64_t>(arguments.integer("seed", 0, 0, INT64_MAX)),
          .grad_out = {}};
}

// Reads --grad-out, if gradients are asked for.
void add_gradients(const Arguments& arguments, const ApplyInputs& in,
                   const std::map<std::string, std::string>& of_gates,
                   attn_apply::Request& request) {
  const bool wanted = arguments.has("grad-q") || arguments.has("grad-k") ||
                      arguments.has("grad-v") || !of_gates.empty();
  ATTN_CHECK(arguments.has("grad-out") == wanted, "{}",
             wanted ? "--grad-q, --grad-k, --grad-v and --grad-input need --grad-out FILE.npy"
                    : "--grad-out needs at least one of --grad-q, --grad-k, --grad-v, "
                      "--grad-input");
  for (const auto& [name, path] : of_gates)
    ATTN_CHECK(request.gates.contains(name), "--grad-input {}: no --input has that name", name);
  if (!wanted) return;
  const Array grad = read_attention_array(arguments, "grad-out");
  require_finite("grad-out", arguments.get("grad-out"), grad);
  require_same(grad, "grad-out", in.q, "q", {0, 1, 2, 3});
  request.grad_out = {grad.shape, grad.values};
}

void require_request(const VariantInfo& info, const Params& params,
                     const attn_apply::Request& request) {
  const std::vector<int64_t>&q = request.q.shape, &k = request.k.shape;
  const AttentionShape shape{q[0], q[1], q[2], k[2], q[3], request.causal};
  require_runnable(info, params, shape);
  if (!request.prompt) return;
  if (const auto reason = info.why_no_decoder(shape, params))
    throw_error(fmt::format("--prompt: {} {}", info.name, *reason));
}

// [batch, heads, steps, most positions that a step saw], -1 behind the last one of each.
Array array_of_seen(const attn_apply::Output& output, const std::vector<int64_t>& q) {
  size_t most = 0;
  for (const auto& step : output.seen)
    for (const auto& positions : step) most = std::max(most, positions.size());
  const size_t rows = static_cast<size_t>(q[0] * q[1]), steps = output.seen.size();
  Array array{.shape = {q[0], q[1], std::ssize(output.seen), static_cast<int64_t>(most)},
              .values = std::vector<double>(rows * steps * most, -1),
              .type = "<i4"};
  for (size_t step = 0; step < steps; ++step)
    for (size_t row = 0; row < rows; ++row)
      std::copy(output.seen[step][row].begin(), output.seen[step][row].end(),
                array.values.begin() + static_cast<int64_t>((row * steps + step) * most));
  return array;
}

// The rows of [batch · heads, len, head_dim] from position `begin` on.
std::vector<double> rows_from(int64_t begin, const std::vector<double>& all,
                              const std::vector<int64_t>& shape) {
  const int64_t sequence = shape[2] * shape[3];
  std::vector<double> rows;
  for (auto at = all.begin(); at != all.end(); at += sequence)
    rows.insert(rows.end(), at + begin * shape[3], at + sequence);
  return rows;
}

// A variant that hides the future under every mask is compared with exact attention that hides it
// too: the difference would be mostly the future. Of decoding the steps are compared: the rows of
// the prompt are those of the forward.
void tell_error(const Chosen& chosen, const Params& params, attn_apply::Request request,
                const std::vector<double>& out) {
  const VariantInfo& info = *chosen.variant;
  if (!request.prompt && forgets_of(info, params))
    return print(
        fmt::format("no error against exact attention: {} forgets while it decodes; add --prompt N "
                    "to decode\n",
                    info.name));
  if (const auto why =
          why_no_fidelity({.variant = &info, .params = chosen.params, .causal = request.causal}))
    return print(fmt::format("no error against exact attention: {} {}\n", info.name, *why));
  const bool hides = !request.causal && info.always_causal && info.always_causal(params);
  if (hides)
    warn(fmt::format(
        "{} hides the future without --causal too: exact attention here is the causal one\n",
        info.name));
  request.causal = request.causal || hides;
  const std::vector<int64_t> shape = request.q.shape;
  const int64_t begin = request.prompt.value_or(0);
  const std::string of_steps =
      request.prompt ? fmt::format("of {} steps ", shape[2] - begin) : std::string();
  request.variant = exact_reference().name, request.prompt.reset();
  request.params.clear(), request.weights.clear(), request.gates.clear(), request.grad_out = {};
  const std::vector<double> exact = attn_apply::run_double(request).out;
  print(fmt::format("relative error {}against {}exact attention: {:.3e}\n", of_steps,
                    hides ? "causal " : "",
                    relative_error(rows_from(begin, out, shape), rows_from(begin, exact, shape))));
}

int run_apply(const Arguments& arguments) {
  ATTN_CHECK(arguments.has("variant"),
             "apply needs --variant SPEC (attnbench list variants shows them)");
  const bool of_layer = arguments.one_of("scope", {"attention", "layer"}) == "layer";
  require_options_of_scope(arguments, of_layer);
  if (of_layer) return apply_layer(arguments);
  const Chosen chosen = choose_variant(arguments.get("variant"));
  const Params params(chosen.variant->name, chosen.variant->params, chosen.params);
  const VariantInfo::Reads read = chosen.variant->read_by(params);
  const ApplyInputs in = read_inputs(arguments, read);
  ATTN_CHECK(arguments.has("out"), "apply needs --out FILE.npy");
  attn_apply::Request request = request_of(arguments, chosen, in);
  require_request(*chosen.variant, params, request);
  const std::map<std::string, std::string> of_gates = named_files(arguments, "grad-input");
  add_gradients(arguments, in, of_gates, request);
  require_outputs(arguments, {"out", "seen", "grad-q", "grad-k", "grad-v"}, of_gates);

  const attn_apply::Output output = answered([&] {
    return in.q.type == "<f4" ? attn_apply::run_float(request) : attn_apply::run_double(request);
  });
  const std::vector<Result> results = {{"out", &in.q, &output.out},
                                       {"grad-q", &in.q, &output.grad_q},
                                       {"grad-k", &in.k, &output.grad_k},
                                       {"grad-v", &in.v, &output.grad_v}};
  for (const Result& result : results)
    require_finite_result(result.option, *result.values, in.q.type);
  for (const auto& [name, values] : output.grad_gates)
    require_finite_result("grad-input " + name, values, in.q.type);
  NpyFiles files;
  for (const Result& result : results)
    if (arguments.has(result.option))
      files.add(arguments.get(result.option), {result.like->shape, *result.values, in.q.type});
  if (request.tells_seen) files.add(arguments.get("seen"), array_of_seen(output, in.q.shape));
  for (const auto& [name, path] : of_gates)
    files.add(path, {request.gates.at(name).shape, output.grad_gates.at(name), in.q.type});
  files.put();
  tell_unread(arguments, chosen.variant->name, read);
  tell_error(chosen, params, std::move(request), output.out);
  return kOk;
}

}  // namespace

Verb apply_verb() {
  return {
      .name = "apply",
      .usage =
          "--variant SPEC [--q Q.npy --k K.npy --v V.npy | --scope layer --x X.npy --heads N] "
          "--out O.npy [OPTION...]",
      .summary =
          "runs one variant, or a layer of it, on your own arrays (NumPy .npy) and writes "
          "the output",
      .options =
          {{"variant", 'v', "SPEC", "for example linformer[rank=64]"},
           {"q", 0, "FILE",
            "float32 or float64, C order, [batch, heads, q_len, head_dim]; not needed where the "
            "variant reads no queries"},
           {"k", 0, "FILE",
            "[batch, heads, kv_len, head_dim]; not needed where the variant reads no keys"},
           {"v", 0, "FILE", "[batch, heads, kv_len, head_dim]"},
           {"scope", 0, "attention|layer",
            "layer: on rows --x, the projections W_q, W_k, W_v and W_o of --heads heads, those of "
            "gates, and the variant between them, without norm, residual and feed-forward; "
            "default attention"},
           {"x", 0, "FILE", "scope layer: float32 or float64, C order, [batch, len, width]"},
           {"heads", 0, "N", "scope layer: heads of width / N numbers"},
           {"block", 0, "mixer|paper",
            "scope layer: paper: the layer of the variant's paper; default mixer, or as SPEC says"},
           {"list-weights", 0, "",
            "scope layer: lists the weights that --set replaces, with their shapes, and stops"},
           {"causal", 0, "", "query i sees keys j <= i + kv_len - q_len"},
           {"prompt", 0, "N",
            "decodes: the first N positions are a prompt, whose answers are the causal forward's, "
            "each later one is a step; the heads of q may share fewer heads of k and v"},
           {"seen", 0, "FILE",
            "with --prompt, of a cache that forgets (full[evict=...]): the positions that each "
            "step saw, int32 [batch, heads, steps, most of them], ascending, -1 behind the last"},
           {"kv-lengths", 0, "FILE",
            "int32 or int64 [batch]: valid keys; the others are padding and may hold anything, "
            "NaN too, and so may queries of self-attention there"},
           {"set", 0, "NAME=FILE",
            "replaces a weight (attnbench info NAME lists them, of a layer --list-weights); "
            "repeatable",
            true},
           {"input", 0, "NAME=FILE",
            "a gate, [batch, heads, kv_len, width] (attnbench info NAME lists them); "
            "repeatable",
            true},
           {"seed", 0, "N", "of weights that are not set; default 0"},
           {"out", 0, "FILE",
            "the output, [batch, heads, q_len, head_dim], type as v; of a layer shape and type of "
            "x"},
           {"grad-out", 0, "FILE", "gradient of the output, the output's shape"},
           {"grad-q", 0, "FILE", "gradient of q to write"},
           {"grad-k", 0, "FILE", "gradient of k to write"},
           {"grad-v", 0, "FILE", "gradient of v to write"},
           {"grad-x", 0, "FILE", "scope layer: gradient of x to write"},
           {"grad-input", 0, "NAME=FILE", "gradient of a gate to write; repeatable", true},
           plugin_option()},
      .run = run_apply};
}

}  // namespace attn::cli
