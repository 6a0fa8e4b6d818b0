// One variant at one shape: attention alone, an encoder layer, or a model of two layers. Inputs and
// weights are made once. run() costs one forward pass, one forward and backward pass with all
// gradients, or one decode step.
#include "harness/measure/workload.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/ops/ops_heads.h"
#include "harness/measure/dense_flops.h"
#include "harness/model/encoder.h"
#include "variants/api/counted_cost.h"
#include "variants/api/mixer.h"
#include "variants/api/stack.h"

namespace attn {
namespace {

constexpr int64_t kClasses = 10;
constexpr int64_t kFeedForwardFactor = 4;  // of the width, as in Vaswani et al. 2017, section 3.3
constexpr double kDenseTrain = 1 + 2;      // forward, gradient of the input, gradient of the weight

ModelConfig model_config(const WorkloadSpec& spec) {
  ModelConfig config;
  config.layer = layer_config(spec);
  config.layers = spec.layers;
  config.length = spec.length;
  config.classes = kClasses;
  config.seed = spec.seed;
  return config;
}

Batch model_batch(const WorkloadSpec& spec) {
  Batch batch;
  batch.size = spec.batch;
  batch.length = spec.length;
  Rng stream = rng(spec.seed, "workload values");
  for (int64_t i = 0; i < spec.batch * spec.length; ++i)
    batch.values.push_back(static_cast<float>(stream.normal()));
  return batch;
}

VariantInfo::Reads reads_of(const WorkloadSpec& spec) {
  return spec.variant->read_by(spec.chosen());
}

// What a pass adds to the cost of a variant that takes as many heads of keys as of queries: it
// reads the fewer heads and writes and holds a copy for every query head. Keys that the variant
// does not read are not repeated.
void add_repeats(const WorkloadSpec& spec, Cost& cost) {
  const auto tensors = static_cast<double>(reads_of(spec).keys ? 2 : 1);
  const auto numbers = static_cast<double>(spec.batch * spec.heads * spec.length * spec.head_dim);
  const double repeated = tensors * numbers * static_cast<double>(size_of(spec.dtype));
  cost.peak_bytes += repeated;
  cost.bytes += repeated + repeated / static_cast<double>(spec.group());
}

int64_t layers_of(const WorkloadSpec& spec) {
  return spec.scope == ScopeKind::model ? spec.layers : 1;
}

// Of all layers.
double layers_dense_flops(const WorkloadSpec& spec) {
  const int64_t width = spec.heads * spec.head_dim;
  const DenseLayer dense{.tokens = static_cast<double>(spec.batch * spec.length),
                         .heads = spec.heads,
                         .width = width,
                         .feed_forward = kFeedForwardFactor * width,
                         .kept = 1 / static_cast<double>(spec.group())};
  double flops = 0;
  for (int64_t i = 0; i < layers_of(spec); ++i) {
    const auto [variant, params] = layer_variant(*spec.variant, spec.params, i);
    flops += dense_flops(*variant, Params(variant->name, variant->params, params), dense);
  }
  return flops;
}

// Of the model's linear input and head.
double ends_flops(const WorkloadSpec& spec) {
  const double width = static_cast<double>(spec.heads * spec.head_dim);
  return 2 * static_cast<double>(spec.batch) * width * static_cast<double>(spec.length + kClasses);
}

}  // namespace

LayerConfig layer_config(const WorkloadSpec& spec) {
  LayerConfig config;
  config.variant = spec.variant;
  config.variant_params = spec.params;
  config.width = spec.heads * spec.head_dim;
  config.heads = spec.heads;
  config.kv_heads = spec.kv_heads;
  config.feed_forward = kFeedForwardFactor * config.width;
  config.max_len = spec.length;
  config.causal = spec.causal;
  config.seed = spec.seed;
  return config;
}

struct Workload::State {
  explicit State(const WorkloadSpec& given) : spec(given) {
    ATTN_CHECK(spec.variant, "a workload needs a variant");
    const std::optional<std::string> reason = why_not(spec);
    ATTN_CHECK(!reason, "{}: {}", spec.variant->name, *reason);
    set_threads(spec.threads);
    if (!spec.variant->is_stack()) {
      attention = make_attention(*spec.variant, spec.params);
      cost = declared_cost(*attention, spec.kv_heads);
      if (cost && spec.group() > 1 && spec.scope == ScopeKind::attention) add_repeats(spec, *cost);
    }
    total = total_cost();
    if (spec.scope != ScopeKind::attention) attention.reset();  // the layers make their own
    if (spec.scope == ScopeKind::layer) layer = std::make_unique<Layer>(layer_config(spec));
    if (spec.scope == ScopeKind::model) model = std::make_unique<Encoder>(model_config(spec));
    make_inputs();
    if (spec.mode == Mode::train) make_leaves();
    if (spec.mode == Mode::decode) make_decoder();
  }

  std::unique_ptr<Attention> make_attention(const VariantInfo& variant,
                                            const std::map<std::string, ParamValue>& params) const {
    const MemoryScope scope(Purpose::weights);
    AttentionConfig config;
    config.heads = spec.heads;
    config.head_dim = spec.head_dim;
    config.max_len = spec.length;
    config.causal = spec.causal;
    config.seed = spec.seed;
    return variant.build(std::move(config), params);
  }

  std::optional<Cost> declared_cost(const Attention& of, int64_t kv_heads) const {
    std::optional<Cost> declared = of.declared_cost(spec.shape());
    if (declared && kv_heads > 0 && kv_heads < spec.heads)
      declared->state_bytes = of.state_bytes(spec.shape(), kv_heads);
    return declared;
  }

  // FLOPs and bytes of state of all layers; nullopt if one declares no cost.
  std::optional<Cost> total_cost() const {
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

  void make_inputs() {
    if (spec.scope == ScopeKind::model) {
      batch = model_batch(spec);
      return;
    }
    const bool train = spec.mode == Mode::train;
    const bool rows = spec.scope == ScopeKind::layer || mixer();
    const Shape query{spec.batch, spec.heads, asked(), spec.head_dim},
        key = query.with(1, spec.key_heads());
    const std::vector<Shape> shapes =
        rows ? std::vector<Shape>{{spec.batch, spec.length, spec.heads * spec.head_dim}}  // x
             : std::vector<Shape>{query, key, key};                                       // q, k, v
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Tensor x = Tensor::normal(shapes[i], rng(spec.seed, "workload inputs", i));
      if (spec.dtype == Dtype::bfloat16)
        rounded_inputs.push_back(rounded(x));
      else
        inputs.emplace_back(x, train);
    }
    if (attention)
      gates = leaves_of(
          random_gates(attention->gates(), spec.batch, spec.heads, asked(), spec.seed), train);
  }

  // What run() asks for the rows of x alone; null: an attention, or a decoder, of q, k and v.
  const Mixer* mixer() const {
    return attention && spec.mode != Mode::decode ? as_mixer(*attention) : nullptr;
  }

  // Positions that one run() answers.
  int64_t asked() const { return spec.mode == Mode::decode ? 1 : spec.length; }

  void make_decoder() {
    const NoGrad no_grad;
    decoder = attention->decoder(spec.batch, spec.length, spec.kv_heads, spec.dtype);
    const int64_t many = prefill_positions(spec);
    for (int64_t at = 0; at < spec.length - 1; at += many) {
      const Shape shape{spec.batch, spec.key_heads(), std::min(many, spec.length - 1 - at),
                        spec.head_dim};
      const auto index = static_cast<uint64_t>(at);
      const Tensor keys = Tensor::normal(shape, rng(spec.seed, "workload keys", index));
      const Tensor values = Tensor::normal(shape, rng(spec.seed, "workload values", index));
      const std::vector<Tensor> gates_then = random_gates(
          attention->gates(), spec.batch, spec.heads, shape[2], spec.seed, 1, index + 1);
      const auto append = [&](const auto& k, const auto& v) {
        decoder->extend(k, v, decoder->keys_are_queries() ? repeated(k) : k, gates_then);
      };
      if (spec.dtype == Dtype::bfloat16)
        append(rounded(keys), rounded(values));
      else
        append(keys, values);
    }
    if (spec.dtype == Dtype::bfloat16)
      rounded_out = BFloat16Tensor(rounded_inputs[0].shape());
    else
      out = Tensor(inputs[0].shape());
    step_gates = values_of(gates);
  }

  void make_leaves() {
    Shape shape{spec.batch, kClasses};
    if (spec.scope != ScopeKind::model) shape = inputs[0].shape();
    seed = Tensor::normal(shape, rng(spec.seed, "workload gradient"));
    leaves = inputs;
    leaves.insert(leaves.end(), gates.begin(), gates.end());
    const std::vector<Weight> weights = attention ? attention->weights()
                                        : layer   ? layer->weights()
                                                  : model->weights();
    for (const Weight& weight : weights) {
      if (weight.learned) leaves.push_back(weight.value);
    }
  }

  Var forward() const {
    if (model) return model->forward(batch);          // [batch, classes]
    if (layer) return layer->forward(inputs[0], {});  // [batch, length, width]
    if (const Mixer* rows = mixer()) return rows->mix(inputs[0], {spec.causal, {}});
    const Var values = repeated(inputs[2]);
    const Var keys = spec.group() > 1 && !reads_of(spec).keys ? values : repeated(inputs[1]);
    return attention->forward(inputs[0], keys, values, {spec.causal, {}},
                              gates);  // [batch, heads, length, head_dim]
  }

  void forward_rounded() const {
    const std::vector<BFloat16Tensor>& x = rounded_inputs;
    if (const Mixer* rows = mixer()) {
      rows->mix(x[0], {spec.causal, {}});
      return;
    }
    const BFloat16Tensor values = repeated(x[2]);
    const BFloat16Tensor keys = spec.group() > 1 && !reads_of(spec).keys ? values : repeated(x[1]);
    attention->forward(x[0], keys, values, {spec.causal, {}}, gates);
  }

  // Keys or values for every query head; the same where each has its own.
  Var repeated(const Var& x) const { return repeat_heads(x, spec.group()); }
  Tensor repeated(const Tensor& x) const { return repeated(Var(x)).value(); }
  BFloat16Tensor repeated(const BFloat16Tensor& x) const { return repeat_heads(x, spec.group()); }

  void step() {
    if (spec.dtype == Dtype::bfloat16)
      decoder->step(rounded_inputs[0], rounded_inputs[1], rounded_inputs[2], rounded_out,
                    step_gates);
    else
      decoder->step(inputs[0].value(), inputs[1].value(), inputs[2].value(), out, step_gates);
    decoder->step_back();
  }

  void run() {
    set_threads(spec.threads);
    ran = true;
    if (decoder) return step();
    if (spec.dtype == Dtype::bfloat16) return forward_rounded();
    if (spec.mode == Mode::forward) {
      const NoGrad no_grad;
      forward();
      return;
    }
    for (const Var& leaf : leaves) leaf.zero_grad();
    forward().backward(seed);
  }

  // FLOPs of one run, as counted in a second one: what is made on first use is none of its cost.
  double counted_flops() {
    if (!ran) run();
    const double before = counters().flops;
    run();
    return counters().flops - before;
  }

  WorkloadSpec spec;
  std::optional<Cost> cost;       // declared, of one attention; a stack has none
  std::optional<Cost> total;      // of all layers
  std::optional<double> counted;  // FLOPs, where none are declared
  bool ran = false;
  std::unique_ptr<Attention> attention;
  std::unique_ptr<Layer> layer;
  std::unique_ptr<Encoder> model;
  std::unique_ptr<Decoder> decoder;  // of all positions but the last, mode decode
  std::vector<Var> inputs;
  std::vector<Var> gates;                      // of the attention, at scope attention
  std::vector<Tensor> step_gates;              // the same, mode decode
  std::vector<BFloat16Tensor> rounded_inputs;  // in place of them, in bfloat16
  Batch batch;
  Tensor out;                  // mode decode
  BFloat16Tensor rounded_out;  // in place of it, in bfloat16
  Tensor seed;                 // gradient of the output, mode train
  std::vector<Var> leaves;     // that get a gradient, mode train
};

Workload::Workload(const WorkloadSpec& spec) : state_(std::make_unique<State>(spec)) {}
Workload::~Workload() = default;

void Workload::run() { state_->run(); }

Var Workload::forward() const {
  ATTN_CHECK(!state_->decoder, "mode decode has no forward pass");
  ATTN_CHECK(state_->spec.dtype == Dtype::float32, "a pass in bfloat16 is not recorded");
  return state_->forward();
}

const std::vector<Var>& Workload::inputs() const { return state_->inputs; }
const std::vector<Var>& Workload::gates() const { return state_->gates; }

bool Workload::widens() const {
  const State& s = *state_;
  if (s.spec.dtype == Dtype::float32) return false;
  return s.decoder ? !s.decoder->keeps_bfloat16() : !s.attention->reads_bfloat16();
}

bool Workload::declares_cost() const { return state_->decoder || state_->total; }

double Workload::flops() const {
  State& s = *state_;
  if (s.decoder) return s.decoder->step_flops();
  const bool train = s.spec.mode == Mode::train;
  if (!s.total || (train && s.total->backward_depends_on_data)) {
    if (!s.counted) s.counted = s.counted_flops();
    return *s.counted;
  }
  double dense = s.spec.scope == ScopeKind::attention ? 0 : layers_dense_flops(s.spec);
  if (s.spec.scope == ScopeKind::model) dense += ends_flops(s.spec);
  return s.total->flops + (train ? s.total->backward_flops : 0) + dense * (train ? kDenseTrain : 1);
}

std::optional<double> Workload::bytes() const {
  const State& s = *state_;
  if (s.decoder) return s.decoder->step_bytes();
  if (s.spec.mode != Mode::forward || s.spec.scope != ScopeKind::attention) return std::nullopt;
  return s.cost ? std::optional(s.cost->bytes) : std::nullopt;
}

const Attention& Workload::attention() const {
  ATTN_CHECK(state_->attention, "a workload of scope {} has no bare attention",
             to_string(state_->spec.scope));
  return *state_->attention;
}

const std::optional<Cost>& Workload::attention_cost() const { return state_->cost; }
int64_t Workload::layers() const { return layers_of(state_->spec); }

std::optional<int64_t> Workload::state_bytes() const {
  const State& s = *state_;
  if (s.decoder) return s.decoder->state_bytes();
  if (s.total) return std::llround(s.total->state_bytes);
  int64_t bytes = 0;
  for (int64_t i = 0; i < layers(); ++i) {
    const auto [variant, params] = layer_variant(*s.spec.variant, s.spec.params, i);
    const std::optional<double> held =
        held_state_bytes(*variant, params, s.spec.shape(), s.spec.kv_heads);
    if (!held) return std::nullopt;
    bytes += std::llround(*held);
  }
  return bytes;
}

Tensor Workload::decoded() const {
  ATTN_CHECK(state_->decoder, "mode {} decodes nothing", to_string(state_->spec.mode));
  return state_->spec.dtype == Dtype::bfloat16 ? widened(state_->rounded_out) : state_->out;
}

const WorkloadSpec& Workload::spec() const { return state_->spec; }

}  // namespace attn
