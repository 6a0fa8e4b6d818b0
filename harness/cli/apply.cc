// attnbench apply: one variant on the user's own arrays, with gradients and the user's own weights
// on request.
#include <cmath>

#include "harness/cli/apply_run.h"
#include "harness/cli/npy.h"
#include "harness/cli/specs.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/measure/fidelity.h"

namespace attn::cli {
namespace {

Array read_finite(const std::string& option, const std::string& path) {
  Array array = read_npy(path);
  ATTN_CHECK(array.is_float(), "--{} {}: type '{}'; expected float32 ('<f4') or float64 ('<f8')",
             option, path, array.type);
  for (size_t i = 0; i < array.values.size(); i++)
    ATTN_CHECK(std::isfinite(array.values[i]),
               "--{} {}: value {} at flat index {}; expected finite numbers", option, path,
               array.values[i], i);
  return array;
}

Array read_input(const Arguments& arguments, const std::string& option) {
  ATTN_CHECK(arguments.has(option), "apply needs --{} FILE.npy", option);
  Array array = read_finite(option, arguments.get(option));
  ATTN_CHECK(array.shape.size() == 4, "--{} {}: shape {}; expected [batch, heads, len, head_dim]",
             option, arguments.get(option), array.shape_text());
  for (const int64_t dim : array.shape)
    ATTN_CHECK(dim >= 1, "--{} {}: shape {} has an empty dimension", option, arguments.get(option),
               array.shape_text());
  return array;
}

void require_same(const Array& a, const char* a_name, const Array& b, const char* b_name,
                  std::vector<size_t> dims) {
  bool same = a.shape.size() == b.shape.size();
  for (const size_t i : dims) same = same && a.shape[i] == b.shape[i];
  ATTN_CHECK(same, "--{} is {} but --{} is {}: they must agree in {}", a_name, a.shape_text(),
             b_name, b.shape_text(),
             dims.size() == 4 ? "every dimension" : "batch, heads and head_dim");
  ATTN_CHECK(a.type == b.type, "--{} is '{}' but --{} is '{}': one type for all arrays", a_name,
             a.type, b_name, b.type);
}

std::vector<int64_t> read_lengths(const Arguments& arguments, int64_t batch, int64_t kv_len) {
  if (!arguments.has("kv-lengths")) return {};
  const std::string path = arguments.get("kv-lengths");
  const Array array = read_npy(path);
  ATTN_CHECK(!array.is_float(), "--kv-lengths {}: type '{}'; expected int32 or int64", path,
             array.type);
  ATTN_CHECK(array.shape.size() == 1 && array.shape[0] == batch,
             "--kv-lengths {}: shape {}; expected [{}], one a batch entry", path,
             array.shape_text(), batch);
  std::vector<int64_t> lengths;
  for (const double value : array.values) {
    ATTN_CHECK(value >= 0 && value <= static_cast<double>(kv_len),
               "--kv-lengths {}: length {} is not in 0..{}", path, value, kv_len);
    lengths.push_back(static_cast<int64_t>(value));
  }
  return lengths;
}

// The files of an option that is given as NAME=FILE.npy, by name.
std::map<std::string, std::string> named_files(const Arguments& arguments,
                                               const std::string& option) {
  std::map<std::string, std::string> files;
  for (const std::string& text : arguments.all(option)) {
    const size_t equals = text.find('=');
    ATTN_CHECK(equals != std::string::npos && equals > 0,
               "--{} {} is not valid; expected NAME=FILE.npy", option, text);
    files[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return files;
}

std::map<std::string, attn_apply::Values> read_named(const Arguments& arguments,
                                                     const std::string& option) {
  std::map<std::string, attn_apply::Values> arrays;
  for (const auto& [name, path] : named_files(arguments, option)) {
    Array array = read_finite(option, path);
    arrays[name] = {array.shape, std::move(array.values)};
  }
  return arrays;
}

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

void require_finite(const std::string& option, const std::vector<double>& values,
                    const std::string& type) {
  for (size_t i = 0; i < values.size(); i++)
    ATTN_CHECK(std::isfinite(values[i]),
               "the result for --{} is {} at flat index {}: the inputs are too large for '{}'",
               option, values[i], i, type);
}

attn_apply::Output applied(const attn_apply::Request& request, bool in_float) {
  try {
    return in_float ? attn_apply::run_float(request) : attn_apply::run_double(request);
  } catch (const attn_apply::Refusal& refusal) {
    throw_error(refusal.what());
  }
}

int run_apply(const Arguments& arguments) {
  ATTN_CHECK(arguments.has("variant"),
             "apply needs --variant SPEC (attnbench list variants shows them)");
  const Chosen chosen = choose_variant(arguments.get("variant"));
  const Array q = read_input(arguments, "q"), k = read_input(arguments, "k"),
              v = read_input(arguments, "v");
  require_same(q, "q", k, "k", {0, 1, 3});
  require_same(k, "k", v, "v", {0, 1, 2, 3});
  ATTN_CHECK(arguments.has("out"), "apply needs --out FILE.npy");

  attn_apply::Request request{
      .variant = chosen.variant->name,
      .params = chosen.params,
      .q = {q.shape, q.values},
      .k = {k.shape, k.values},
      .v = {v.shape, v.values},
      .causal = arguments.has("causal"),
      .kv_lengths = read_lengths(arguments, k.shape[0], k.shape[2]),
      .gates = read_named(arguments, "input"),
      .weights = read_named(arguments, "set"),
      .seed = static_cast<uint64_t>(arguments.integer("seed", 0, 0, INT64_MAX)),
      .grad_out = {}};
  const AttentionShape shape = {q.shape[0], q.shape[1], q.shape[2],
                                k.shape[2], q.shape[3], request.causal};
  const Params params(chosen.variant->name, chosen.variant->params, chosen.params);
  if (const auto reason = chosen.variant->why_not(shape, params))
    throw_error(fmt::format("{} cannot run here: {}", chosen.variant->name, *reason));

  const std::map<std::string, std::string> of_gates = named_files(arguments, "grad-input");
  const bool wants_gradients = arguments.has("grad-q") || arguments.has("grad-k") ||
                               arguments.has("grad-v") || !of_gates.empty();
  ATTN_CHECK(arguments.has("grad-out") == wants_gradients, "{}",
             wants_gradients ? "--grad-q, --grad-k, --grad-v and --grad-input need --grad-out "
                               "FILE.npy"
                             : "--grad-out needs at least one of --grad-q, --grad-k, --grad-v, "
                               "--grad-input");
  for (const auto& [name, path] : of_gates) {
    ATTN_CHECK(request.gates.contains(name), "--grad-input {}: no --input has that name", name);
    require_writable(path);
  }
  if (wants_gradients) {
    const Array grad = read_input(arguments, "grad-out");
    require_same(grad, "grad-out", q, "q", {0, 1, 2, 3});
    request.grad_out = {grad.shape, grad.values};
  }
  for (const char* const option : {"out", "grad-q", "grad-k", "grad-v"})
    if (arguments.has(option)) require_writable(arguments.get(option));

  const attn_apply::Output output = applied(request, q.type == "<f4");
  const std::vector<Result> results = {{"out", &q, &output.out},
                                       {"grad-q", &q, &output.grad_q},
                                       {"grad-k", &k, &output.grad_k},
                                       {"grad-v", &v, &output.grad_v}};
  for (const Result& result : results) require_finite(result.option, *result.values, q.type);
  for (const auto& [name, values] : output.grad_gates)
    require_finite("grad-input " + name, values, q.type);
  for (const Result& result : results)
    if (arguments.has(result.option))
      write_npy(arguments.get(result.option), {result.like->shape, *result.values, q.type});
  for (const auto& [name, path] : of_gates)
    write_npy(path, {request.gates.at(name).shape, output.grad_gates.at(name), q.type});

  const WorkloadSpec spec = {.variant = chosen.variant, .params = chosen.params};
  if (const auto why = why_no_fidelity(spec)) {
    print(fmt::format("no error against exact attention: {} {}\n", request.variant, *why));
    return kOk;
  }
  attn_apply::Request exact = request;
  exact.variant = exact_reference().name, exact.params.clear(), exact.weights.clear(),
  exact.gates.clear(), exact.grad_out = {};
  const double error = relative_error(output.out, attn_apply::run_double(exact).out);
  print(fmt::format("relative error against exact attention: {:.3e}\n", error));
  return kOk;
}

}  // namespace

Verb apply_verb() {
  return {
      .name = "apply",
      .usage = "--variant SPEC --q Q.npy --k K.npy --v V.npy --out O.npy [OPTION...]",
      .summary = "runs one variant on your own q, k, v arrays (NumPy .npy) and writes the output",
      .options = {{"variant", 'v', "SPEC", "for example linformer[rank=64]"},
                  {"q", 0, "FILE", "float32 or float64, C order, [batch, heads, q_len, head_dim]"},
                  {"k", 0, "FILE", "[batch, heads, kv_len, head_dim]"},
                  {"v", 0, "FILE", "[batch, heads, kv_len, head_dim]"},
                  {"causal", 0, "", "query i sees keys j <= i + kv_len - q_len"},
                  {"kv-lengths", 0, "FILE",
                   "int32 or int64 [batch]: valid keys; the others are padding"},
                  {"set", 0, "NAME=FILE",
                   "replaces a weight (attnbench info NAME lists them); repeatable", true},
                  {"input", 0, "NAME=FILE",
                   "a gate, [batch, heads, kv_len, width] (attnbench info NAME lists them); "
                   "repeatable",
                   true},
                  {"seed", 0, "N", "of weights that are not set; default 0"},
                  {"out", 0, "FILE", "the output, [batch, heads, q_len, head_dim], type as q"},
                  {"grad-out", 0, "FILE", "gradient of the output, the output's shape"},
                  {"grad-q", 0, "FILE", "gradient of q to write"},
                  {"grad-k", 0, "FILE", "gradient of k to write"},
                  {"grad-v", 0, "FILE", "gradient of v to write"},
                  {"grad-input", 0, "NAME=FILE", "gradient of a gate to write; repeatable", true},
                  plugin_option()},
      .run = run_apply};
}

}  // namespace attn::cli
