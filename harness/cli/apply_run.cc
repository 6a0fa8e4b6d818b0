// See apply_run.h. This file is compiled twice; ATTN_DOUBLE decides which of the two functions it
// defines.
#include "harness/cli/apply_run.h"

#include <algorithm>

#include "core/base/check.h"
#include "variants/catalog.h"

namespace attn_apply {
namespace {

attn::Shape shape_of(const Values& values) {
  const std::vector<int64_t>& s = values.shape;
  switch (s.size()) {
    case 1:
      return {s[0]};
    case 2:
      return {s[0], s[1]};
    case 3:
      return {s[0], s[1], s[2]};
    case 4:
      return {s[0], s[1], s[2], s[3]};
  }
  attn::throw_error(
      fmt::format("arrays of {} dimensions are not supported; expected 1 to 4", s.size()));
}

attn::Tensor tensor(const Values& values) {
  return attn::Tensor::of(shape_of(values), values.values);
}

std::vector<double> numbers(const attn::Tensor& tensor) {
  return {tensor.data(), tensor.data() + tensor.size()};
}

// An input that no output depends on has no gradient: zeros.
std::vector<double> gradient(const attn::Var& var) {
  return var.grad().defined() ? numbers(var.grad())
                              : std::vector<double>(static_cast<size_t>(var.value().size()));
}

void set_weights(const attn::Attention& attention, const std::map<std::string, Values>& given) {
  std::vector<std::string> names;
  for (const attn::Weight& weight : attention.weights()) names.push_back(weight.name);
  for (const auto& [name, values] : given) {
    bool found = false;
    for (const attn::Weight& weight : attention.weights()) {
      if (weight.name != name) continue;
      found = true;
      const attn::Shape shape = shape_of(values);
      ATTN_CHECK(shape == weight.value.shape(), "--set {}: the array is {}, the weight is {}", name,
                 shape.str(), weight.value.shape().str());
      weight.value.set_value(tensor(values));
    }
    ATTN_CHECK(found, "--set {}: no such weight; {}", name,
               names.empty() ? std::string("this variant has none")
                             : fmt::format("nearest is '{}'", attn::nearest(name, names)));
  }
}

// In the order of Attention::gates().
std::vector<attn::Var> gates_of(const attn::Attention& attention,
                                const std::map<std::string, Values>& given, bool gradients) {
  std::vector<std::string> names;
  for (const attn::GateInput& gate : attention.gates()) names.push_back(gate.name);
  for (const auto& [name, values] : given)
    ATTN_CHECK(std::find(names.begin(), names.end(), name) != names.end(),
               "--input {}: no such gate; {}", name,
               names.empty() ? std::string("this variant reads none")
                             : fmt::format("nearest is '{}'", attn::nearest(name, names)));
  std::vector<attn::Var> gates;
  for (const attn::GateInput& gate : attention.gates()) {
    ATTN_CHECK(given.contains(gate.name),
               "gate {} is missing: --input {}=FILE.npy of [batch, heads, kv_len, {}]", gate.name,
               gate.name, gate.width);
    gates.emplace_back(tensor(given.at(gate.name)), gradients);
  }
  return gates;
}

Output checked_run(const Request& request) {
  const attn::VariantInfo& info = attn::find_variant(request.variant);
  const attn::AttentionConfig config = {.heads = request.q.shape[1],
                                        .head_dim = request.q.shape[3],
                                        .max_len = request.k.shape[2],
                                        .causal = request.causal,
                                        .seed = request.seed};
  const auto attention = info.build(config, request.params);
  set_weights(*attention, request.weights);
  const bool gradients = !request.grad_out.values.empty();
  const attn::Var q(tensor(request.q), gradients), k(tensor(request.k), gradients),
      v(tensor(request.v), gradients);
  const std::vector<attn::Var> gates = gates_of(*attention, request.gates, gradients);
  const attn::Var out = attention->forward(
      q, k, v, {.causal = request.causal, .kv_lengths = request.kv_lengths}, gates);
  Output output{.out = numbers(out.value())};
  if (gradients) {
    out.backward(tensor(request.grad_out));
    output.grad_q = gradient(q), output.grad_k = gradient(k), output.grad_v = gradient(v);
    for (size_t i = 0; i < gates.size(); i++)
      output.grad_gates[attention->gates()[i].name] = gradient(gates[i]);
  }
  return output;
}

Output run(const Request& request) {
  try {
    return checked_run(request);
  } catch (const attn::Error& error) {
    throw Refusal(error.what());
  }
}

}  // namespace

#ifdef ATTN_DOUBLE
Output run_double(const Request& request) { return run(request); }
#else
Output run_float(const Request& request) { return run(request); }
#endif

}  // namespace attn_apply
