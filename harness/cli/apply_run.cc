// See apply_run.h. This file is compiled twice; ATTN_DOUBLE decides which functions it defines.
#include "harness/cli/apply_run.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "harness/model/residual_blocks.h"
#include "variants/api/forgetting.h"
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

// The name of a weight that one may have meant: the mixer's own, or the nearest.
std::string meant(const std::string& name, const std::vector<std::string>& names) {
  std::string own = "mixer." + name;
  return std::find(names.begin(), names.end(), own) != names.end() ? own
                                                                   : attn::nearest(name, names);
}

void set_weights(const std::vector<attn::Weight>& weights,
                 const std::map<std::string, Values>& given) {
  std::vector<std::string> names;
  for (const attn::Weight& weight : weights) names.push_back(weight.name);
  for (const auto& [name, values] : given) {
    bool found = false;
    for (const attn::Weight& weight : weights) {
      if (weight.name != name) continue;
      found = true;
      const attn::Shape shape = shape_of(values);
      ATTN_CHECK(shape == weight.value.shape(), "--set {}: the array is {}, the weight is {}", name,
                 shape.str(), weight.value.shape().str());
      weight.value.set_value(tensor(values));
    }
    ATTN_CHECK(found, "--set {}: no such weight; {}", name,
               names.empty() ? std::string("this variant has none")
                             : fmt::format("nearest is '{}'", meant(name, names)));
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

attn::Var repeated(const attn::Var& keys, int64_t heads) {
  const int64_t own = keys.value().dim(1);
  return own == heads ? keys : repeat_heads(keys, heads / own);
}

// What attention reads.
struct Rows {
  attn::Var q, k, v;
  std::vector<attn::Var> gates;

  Rows between(int64_t begin, int64_t end) const {
    const auto some = [&](const attn::Var& all) { return slice(all, 2, begin, end); };
    Rows rows{some(q), some(k), some(v), {}};
    for (const attn::Var& gate : gates) rows.gates.push_back(some(gate));
    return rows;
  }
  std::vector<attn::Tensor> gate_values() const {
    std::vector<attn::Tensor> values;
    for (const attn::Var& gate : gates) values.push_back(gate.value());
    return values;
  }
};

attn::Var forward(const attn::Attention& attention, const Rows& x, const attn::Mask& mask) {
  const int64_t heads = x.q.value().dim(1);
  return attention.forward(x.q, repeated(x.k, heads), repeated(x.v, heads), mask, x.gates);
}

// The rows of the prompt by the causal forward, each later row by a step of decoding.
Output decoded(const Request& request, const attn::Attention& attention, const Rows& x) {
  const attn::NoGrad no_grad;
  const attn::Tensor& keys = x.k.value();
  const int64_t len = keys.dim(2), prompt = *request.prompt;
  const auto decoder = attention.decoder(keys.dim(0), len, keys.dim(1));
  const auto* const teller = dynamic_cast<const attn::TellsPositions*>(decoder.get());
  ATTN_CHECK(teller || !request.tells_seen,
             "--seen is of a cache that forgets, such as full[evict=h2o,budget=64]; that of {} "
             "keeps what it is given",
             request.variant);
  Output output;
  std::vector<attn::Var> rows;
  if (prompt > 0) {
    const Rows first = x.between(0, prompt);
    decoder->extend(first.k.value(), first.v.value(), first.q.value(), first.gate_values());
    rows.push_back(forward(attention, first, {.causal = true, .kv_lengths = {}}));
  }
  for (int64_t i = prompt; i < len; ++i) {
    const Rows one = x.between(i, i + 1);
    const attn::Tensor answer(one.q.value().shape());
    decoder->step(one.q.value(), one.k.value(), one.v.value(), answer, one.gate_values());
    if (request.tells_seen) output.seen.push_back(teller->positions_seen(one.q.value()));
    rows.emplace_back(answer);
  }
  output.out = numbers(concat(rows, 2).value());
  return output;
}

Output checked_run(const Request& request) {
  const attn::VariantInfo& info = attn::find_variant(request.variant);
  const attn::AttentionConfig config = {.heads = request.q.shape[1],
                                        .head_dim = request.q.shape[3],
                                        .max_len = request.k.shape[2],
                                        .causal = request.causal,
                                        .seed = request.seed};
  const auto attention = info.build(config, request.params);
  set_weights(attention->weights(), request.weights);
  const bool gradients = !request.grad_out.values.empty();
  const attn::Var q(tensor(request.q), gradients), k(tensor(request.k), gradients),
      v(tensor(request.v), gradients);
  const std::vector<attn::Var> gates = gates_of(*attention, request.gates, gradients);
  if (request.prompt) return decoded(request, *attention, {q, k, v, gates});
  const attn::Var out = forward(*attention, {q, k, v, gates},
                                {.causal = request.causal, .kv_lengths = request.kv_lengths});
  Output output{.out = numbers(out.value())};
  if (gradients) {
    out.backward(tensor(request.grad_out));
    output.grad_q = gradient(q), output.grad_k = gradient(k), output.grad_v = gradient(v);
    for (size_t i = 0; i < gates.size(); i++)
      output.grad_gates[attention->gates()[i].name] = gradient(gates[i]);
  }
  return output;
}

attn::AttentionBlock layer_of(const LayerRequest& request) {
  const std::vector<int64_t>& shape = request.x.shape;
  return {{.variant = &attn::find_variant(request.variant),
           .variant_params = request.params,
           .width = shape[2],
           .heads = request.heads,
           .max_len = shape[1],
           .causal = request.causal,
           .seed = request.seed},
          ""};
}

LayerOutput checked_layer(const LayerRequest& request) {
  const attn::AttentionBlock layer = layer_of(request);
  set_weights(layer.bare_weights(), request.weights);
  const bool gradients = !request.grad_out.values.empty();
  const attn::Var x(tensor(request.x), gradients);
  const attn::Var out = layer.bare(x, {.causal = request.causal, .kv_lengths = request.kv_lengths});
  LayerOutput output{.out = numbers(out.value()), .grad_x = {}};
  if (gradients) {
    out.backward(tensor(request.grad_out));
    output.grad_x = gradient(x);
  }
  return output;
}

template <class Answer>
auto told(const Answer& answer) {
  try {
    return answer();
  } catch (const attn::Error& error) {
    throw Refusal(error.what());
  }
}

Output run(const Request& request) {
  return told([&] { return checked_run(request); });
}

LayerOutput run_layer(const LayerRequest& request) {
  return told([&] { return checked_layer(request); });
}

}  // namespace

#ifdef ATTN_DOUBLE
Output run_double(const Request& request) { return run(request); }
LayerOutput layer_double(const LayerRequest& request) { return run_layer(request); }
#else
Output run_float(const Request& request) { return run(request); }
LayerOutput layer_float(const LayerRequest& request) { return run_layer(request); }

std::vector<LayerWeight> layer_weights(const LayerRequest& request) {
  return told([&] {
    std::vector<LayerWeight> all;
    for (const attn::Weight& weight : layer_of(request).bare_weights()) {
      std::vector<int64_t> shape;
      for (int i = 0; i < weight.value.shape().rank(); ++i) shape.push_back(weight.value.dim(i));
      all.push_back({weight.name, std::move(shape), weight.learned});
    }
    return all;
  });
}
#endif

}  // namespace attn_apply
