// How a workload is made, and what one pass of it does; see workload.h.
#include "harness/measure/workload_state.h"

#include <algorithm>
#include <utility>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/ops/ops_heads.h"
#include "harness/measure/workload_cost.h"
#include "variants/api/stack.h"

namespace attn {
namespace {

ModelConfig model_config(const WorkloadSpec& spec, LayerConfig layer) {
  ModelConfig config;
  config.layer = std::move(layer);
  config.layers = spec.layers;
  config.length = spec.length;
  config.classes = kWorkloadClasses;
  config.seed = spec.seed;
  return config;
}

Batch model_batch(const WorkloadSpec& spec) {
  Batch batch;
  batch.size = spec.batch;
  batch.length = spec.length;
  Rng stream = rng(spec.input_seed(), "workload values");
  for (int64_t i = 0; i < spec.batch * spec.length; ++i)
    batch.values.push_back(static_cast<float>(stream.normal()));
  return batch;
}

}  // namespace

LayerConfig layer_config(const WorkloadSpec& spec) {
  LayerConfig config;
  config.variant = spec.variant;
  config.variant_params = spec.params;
  config.width = spec.heads * spec.head_dim;
  config.heads = spec.heads;
  config.kv_heads = spec.kv_heads;
  config.feed_forward = hidden_width(spec);
  config.max_len = spec.length;
  config.causal = spec.causal;
  config.seed = spec.seed;
  return config;
}

WorkloadState::WorkloadState(const WorkloadSpec& given) : spec(given) {
  ATTN_CHECK(spec.variant, "a workload needs a variant");
  const std::optional<std::string> reason = why_not(spec);
  ATTN_CHECK(!reason, "{}: {}", spec.variant->name, *reason);
  ATTN_CHECK(spec.mode != Mode::serve, "{}: the calls of mode serve are made by Serving",
             spec.variant->name);
  set_threads(spec.threads);
  if (!spec.variant->is_stack()) {
    attention = make_attention(*spec.variant, spec.params);
    cost = declared_cost(*attention, spec.kv_heads);
    if (cost && spec.group() > 1 && spec.scope == ScopeKind::attention) add_repeats(spec, *cost);
  }
  total = total_cost();
  if (spec.scope != ScopeKind::attention) attention.reset();  // the layers make their own
  if (spec.scope == ScopeKind::layer) layer = std::make_unique<Layer>(watched_config());
  if (spec.scope == ScopeKind::model)
    model = std::make_unique<Encoder>(model_config(spec, watched_config()));
  make_inputs();
  make_changing_row();
  if (spec.mode == Mode::train) make_leaves();
  if (spec.mode == Mode::decode) make_decoder();
}

std::unique_ptr<Attention> WorkloadState::make_attention(
    const VariantInfo& variant, const std::map<std::string, ParamValue>& params) const {
  const MemoryScope scope(Purpose::weights);
  AttentionConfig config;
  config.heads = spec.heads;
  config.head_dim = spec.head_dim;
  config.max_len = spec.length;
  config.causal = spec.causal;
  config.seed = spec.seed;
  config.layer = spec.layer;
  config.receives = spec.receives;
  return variant.build(std::move(config), params);
}

std::optional<Cost> WorkloadState::declared_cost(const Attention& of, int64_t kv_heads) const {
  std::optional<Cost> declared = of.declared_cost(spec.shape());
  if (declared && kv_heads > 0 && kv_heads < spec.heads)
    declared->state_bytes = of.state_bytes(spec.shape(), kv_heads);
  return declared;
}

std::optional<Cost> WorkloadState::total_cost() const {
  Cost sum;
  for (int64_t i = 0; i < layers_of(spec); ++i) {
    std::optional<Cost> one = cost;
    if (spec.variant->is_stack()) {
      const LayerVariant of = layer_variant(*spec.variant, spec.params, i);
      one = declared_cost(*make_attention(*of.variant, of.params),
                          of.variant->traits.mixer ? 0 : spec.kv_heads);
    }
    if (!one) return std::nullopt;
    sum.flops += one->flops;
    sum.backward_flops += one->backward_flops;
    sum.backward_depends_on_data |= one->backward_depends_on_data;
    sum.state_bytes += one->state_bytes;
  }
  return sum;
}

LayerConfig WorkloadState::watched_config() {
  LayerConfig config = layer_config(spec);
  config.watch = [this](const AttentionPass& seen) {
    if (is_watched) watched.push_back(seen);
  };
  return config;
}

void WorkloadState::make_inputs() {
  if (spec.scope == ScopeKind::model) {
    batch = model_batch(spec);
    return;
  }
  const bool train = spec.mode == Mode::train;
  for (Tensor& x : drawn_inputs(spec, spec.scope == ScopeKind::layer || mixer())) {
    if (spec.dtype == Dtype::bfloat16)
      rounded_inputs.push_back(rounded(x));
    else
      inputs.emplace_back(std::move(x), train);
  }
  if (attention && spec.receives)
    received = Var(Tensor::normal(as_carrying(*attention)->handed_shape(spec.batch, spec.length),
                                  rng(spec.input_seed(), "workload received")),
                   train);
  if (attention) gates = leaves_of(drawn_gates(spec, *attention), train);
}

// The last row, of the first head: of x or q, or of v where queries are not read.
void WorkloadState::make_changing_row() {
  if (model) {
    changing = {batch.values.data() + batch.values.size() - 1, 1, spec};
    return;
  }
  const bool is_bfloat16 = spec.dtype == Dtype::bfloat16;
  const size_t count = is_bfloat16 ? rounded_inputs.size() : inputs.size();
  const size_t chosen = count == 1 || reads_of(spec).queries ? 0 : 2;
  const Shape& shape = is_bfloat16 ? rounded_inputs[chosen].shape() : inputs[chosen].shape();
  const int64_t dim = shape[-1], row = (shape[-2] - 1) * dim;
  if (is_bfloat16)
    changing_rounded = {rounded_inputs[chosen].data() + row, dim, spec};
  else
    changing = {inputs[chosen].value().data() + row, dim, spec};
}

const Mixer* WorkloadState::mixer() const {
  return attention && spec.mode != Mode::decode ? as_mixer(*attention) : nullptr;
}

void WorkloadState::make_decoder() {
  const NoGrad no_grad;
  decoder = attention->decoder(spec.batch, spec.length, spec.kv_heads, spec.dtype, spec.cache);
  const int64_t many = prefill_positions(spec);
  for (int64_t at = 0; at < spec.length - 1; at += many) {
    const Prefill then = drawn_prefill(spec, *attention, at, std::min(many, spec.length - 1 - at));
    const auto append = [&](const auto& k, const auto& v, const auto& q) {
      decoder->extend(k, v, decoder->keys_are_queries() ? repeated(k) : q, then.gates);
    };
    if (spec.dtype == Dtype::bfloat16)
      append(rounded(then.keys), rounded(then.values),
             then.queries.defined() ? rounded(then.queries) : BFloat16Tensor());
    else
      append(then.keys, then.values, then.queries);
  }
  if (spec.dtype == Dtype::bfloat16)
    rounded_out = BFloat16Tensor(rounded_inputs[0].shape());
  else
    out = Tensor(inputs[0].shape());
  step_gates = values_of(gates);
}

void WorkloadState::make_leaves() {
  Shape shape{spec.batch, kWorkloadClasses};
  if (spec.scope != ScopeKind::model) shape = inputs[0].shape();
  seed = Tensor::normal(shape, rng(spec.input_seed(), "workload gradient"));
  leaves = inputs;
  leaf_names = inputs.size() == 3 ? std::vector<std::string>{"q", "k", "v"}
                                  : std::vector<std::string>(inputs.size(), "x");
  if (received.defined()) {
    leaves.push_back(received);
    leaf_names.emplace_back("received");
  }
  leaves.insert(leaves.end(), gates.begin(), gates.end());
  for (size_t i = 0; i < gates.size(); ++i)
    leaf_names.push_back("gate " + attention->gates()[i].name);
  const std::vector<Weight> weights = attention ? attention->weights()
                                      : layer   ? layer->weights()
                                                : model->weights();
  for (const Weight& weight : weights) {
    if (!weight.learned) continue;
    leaves.push_back(weight.value);
    leaf_names.push_back(weight.name);
  }
}

Var WorkloadState::forward() const {
  if (model) return model->forward(batch);          // [batch, classes]
  if (layer) return layer->forward(inputs[0], {});  // [batch, length, width]
  if (received.defined())
    return as_carrying(*attention)->pass(inputs[0], received, {spec.causal, {}}).out;
  if (const Mixer* rows = mixer()) return rows->mix(inputs[0], {spec.causal, {}});
  const Var values = repeated(inputs[2]);
  const Var keys = spec.group() > 1 && !reads_of(spec).keys ? values : repeated(inputs[1]);
  return attention->forward(inputs[0], keys, values, {spec.causal, {}},
                            gates);  // [batch, heads, length, head_dim]
}

void WorkloadState::forward_rounded() {
  const std::vector<BFloat16Tensor>& x = rounded_inputs;
  if (const Mixer* rows = mixer()) {
    rounded_answer = rows->mix(x[0], {spec.causal, {}});
    return;
  }
  const BFloat16Tensor values = repeated(x[2]);
  const BFloat16Tensor keys = spec.group() > 1 && !reads_of(spec).keys ? values : repeated(x[1]);
  rounded_answer = attention->forward(x[0], keys, values, {spec.causal, {}}, gates);
}

Var WorkloadState::repeated(const Var& x) const { return repeat_heads(x, spec.group()); }

Tensor WorkloadState::repeated(const Tensor& x) const { return repeated(Var(x)).value(); }

BFloat16Tensor WorkloadState::repeated(const BFloat16Tensor& x) const {
  return repeat_heads(x, spec.group());
}

void WorkloadState::step() {
  if (spec.dtype == Dtype::bfloat16)
    decoder->step(rounded_inputs[0], rounded_inputs[1], rounded_inputs[2], rounded_out, step_gates);
  else
    decoder->step(inputs[0].value(), inputs[1].value(), inputs[2].value(), out, step_gates);
  decoder->step_back();
  if (runs > 1) return;
  const Tensor found = spec.dtype == Dtype::bfloat16 ? widened(rounded_out) : out;
  first_answers.insert(first_answers.end(), found.data(), found.data() + found.size());
}

void WorkloadState::pass() {
  set_threads(spec.threads);
  answer = {};
  rounded_answer = {};
  if (decoder) return step();
  if (spec.dtype == Dtype::bfloat16) return forward_rounded();
  if (spec.mode == Mode::forward) {
    const NoGrad no_grad;
    answer = forward().value();
    return;
  }
  for (const Var& leaf : leaves) leaf.zero_grad();
  const Var recorded = forward();
  answer = recorded.value();
  recorded.backward(seed);
}

void WorkloadState::run() {
  changing.take(runs);
  changing_rounded.take(runs);
  pass();
  ++runs;
}

double WorkloadState::counted_flops() {
  if (runs == 0) run();  // what is made on first use is none of its cost
  const double before = counters().flops;
  run();
  return counters().flops - before;
}

}  // namespace attn
