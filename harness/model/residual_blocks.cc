// Multi-head attention with norm, dropout and residual. Vaswani et al. 2017, arXiv:1706.03762,
// section 3. Time 8·n·width², and the attention's own; feed_forward_block.cc has the other block.
#include "harness/model/residual_blocks.h"

#include <tuple>
#include <utility>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "harness/model/decoded_rows.h"
#include "harness/model/gate_projections.h"
#include "harness/model/handed_on.h"
#include "harness/model/residual.h"
#include "harness/model/weights.h"
#include "variants/api/carrying.h"
#include "variants/api/distance_bias.h"
#include "variants/api/forgetting.h"
#include "variants/api/stack.h"

namespace attn {

namespace {

void check_config(const LayerConfig& config) {
  ATTN_CHECK(config.variant, "a layer needs an attention variant");
  ATTN_CHECK(config.heads >= 1 && config.width >= 1 && config.width % config.heads == 0,
             "width {} is not a multiple of heads {}", config.width, config.heads);
  ATTN_CHECK(config.kv_heads >= 0 && (config.kv_heads == 0 || config.heads % config.kv_heads == 0),
             "heads {} are not a multiple of kv_heads {}", config.heads, config.kv_heads);
  ATTN_CHECK(config.feed_forward >= 1, "feed_forward is {}, it must be at least 1",
             config.feed_forward);
  ATTN_CHECK(config.dropout >= 0 && config.dropout < 1, "dropout {} is outside [0, 1)",
             config.dropout);
}

std::unique_ptr<Attention> build_attention(const LayerConfig& config, const std::string& role) {
  check_config(config);
  AttentionConfig attention;
  attention.heads = config.heads;
  attention.head_dim = config.width / config.heads;
  attention.max_len = config.max_len;
  attention.causal = config.causal;
  attention.layer = config.layer;
  attention.receives = config.receives;
  attention.seed = rng(config.seed, role + "attention").bits();
  const MemoryScope scope(Purpose::weights);
  return config.variant->build(std::move(attention), config.variant_params);
}

}  // namespace

std::optional<std::string> why_no_sharing(const VariantInfo& variant, int64_t heads,
                                          int64_t kv_heads) {
  if (kv_heads > 0 && heads % kv_heads != 0)
    return fmt::format("heads {} are not a multiple of kv_heads {}", heads, kv_heads);
  if (kv_heads > 0 && variant.traits.mixer)
    return fmt::format("{} has no keys that query heads could share (kv_heads)", variant.name);
  return std::nullopt;
}

LayerConfig layer_config_at(const LayerConfig& model, int64_t index) {
  LayerConfig own = model;
  own.layer = index;
  if (!model.variant) return own;
  own.receives = receives_at(*model.variant, model.variant_params, index);
  if (!model.variant->is_stack()) return own;
  const LayerVariant layer = layer_variant(*model.variant, model.variant_params, index);
  own.variant = layer.variant.get();  // held by the stack
  own.variant_params = layer.params;
  if (!own.variant->traits.mixer) return own;
  own.rotary = false;
  own.kv_heads = 0;
  return own;
}

// The projections have no bias, as in Long Range Arena's base model; the feed-forward has.
struct AttentionBlock::State {
  State(const LayerConfig& given, const std::string& block)
      : config(given),
        role(block),
        attention(build_attention(given, role)),
        mixer(as_mixer(*attention)),
        carrying(as_carrying(*attention)),
        biased(given.distances ? as_distance_biased(*attention) : nullptr),
        gain(constant_weight(role + "attention_norm.gain", {given.width}, 1)),
        bias(constant_weight(role + "attention_norm.bias", {given.width}, 0)) {
    ATTN_CHECK(!mixer || (given.kv_heads == 0 && !given.rotary),
               "{} has no keys: neither kv_heads nor rotary positions apply", given.variant->name);
    ATTN_CHECK(!given.distances || !as_forgetting(*attention),
               "a decoder of {} that forgets takes no bias of distances", given.variant->name);
    ATTN_CHECK(!given.distances || biased, "{} takes no bias of distances", given.variant->name);
    if (mixer) return;
    const VariantInfo::Reads read = given.variant->read_by(attention->config().params);
    const int64_t narrow = given.width / given.heads * kv_heads();
    for (const auto& [weight, name, width, used] :
         {std::tuple(&w_q, "W_q", given.width, read.queries),
          {&w_k, "W_k", narrow, read.keys},
          {&w_v, "W_v", narrow, true},
          {&w_o, "W_o", given.width, true}})
      if (used) *weight = glorot_weight(role + name, given.width, width, given.seed);
    gates = GateProjections(*attention, given.width, role, given.seed);
    const MemoryScope scope(Purpose::weights);
    if (given.rotary) rotary_angles = rotary_table(given.max_len, given.width / given.heads);
  }

  Var norm(const Var& x) const { return layer_norm(x, gain.value, bias.value); }
  bool pre() const { return config.norm == Norm::pre; }
  Var before(const Var& x) const { return pre() ? norm(x) : x; }
  Var after(const Var& sum) const { return pre() ? sum : norm(sum); }
  int64_t kv_heads() const { return config.kv_heads > 0 ? config.kv_heads : config.heads; }
  Var to_heads(const Var& x, const Weight& weight) const {
    return linear_to_heads(x, weight.value, config.heads);  // [batch, heads, len, head_dim]
  }
  Var to_kv_heads(const Var& x, const Weight& weight) const {
    return linear_to_heads(x, weight.value, kv_heads());  // [batch, kv_heads, len, head_dim]
  }
  Var repeat_kv(const Var& x) const { return repeat_heads(x, config.heads / kv_heads()); }
  // Of positions from `first` on.
  Var rotated(const Var& x, int64_t first) const {
    return rotary_angles.defined() ? rotate(x, rotary_angles, first) : x;
  }
  struct Projected {
    Var q;     // [batch, heads, len, head_dim]
    Var k, v;  // [batch, kv_heads, len, head_dim]
    GateVars gates = {};
  };
  // Values stand for what the variant does not read.
  Projected projected(const Var& from, const Var& source, int64_t first) const {
    const Var v = to_kv_heads(source, w_v);
    return {w_q.value.defined() ? rotated(to_heads(from, w_q), first) : repeat_kv(v),
            w_k.value.defined() ? rotated(to_kv_heads(source, w_k), first) : v, v,
            gates.of(source)};
  }
  Var attended(const Projected& heads, const Mask& mask) const {
    const std::optional<DecodedFrom> decoded = AnsweredBySteps::of(*attention);
    ATTN_CHECK(!biased || !decoded, "steps of {} from a cache take no bias of distances",
               config.variant->name);
    if (biased)
      return biased->biased_forward(heads.q, repeat_kv(heads.k), repeat_kv(heads.v), mask,
                                    config.distances->table(heads.q.dim(2), heads.k.dim(2)));
    if (decoded)
      return Var(decoded_rows(*attention, decoded->cache, heads.q.value(), heads.k.value(),
                              heads.v.value(), heads.gates, decoded->prompt));
    const Var keys = repeat_kv(heads.k), values = repeat_kv(heads.v);
    const Var out = attention->forward(heads.q, keys, values, mask, heads.gates);
    if (config.watch)
      config.watch({attention.get(), heads.q.value(), keys.value(), values.value(),
                    values_of(heads.gates), mask, out.value()});
    return out;
  }

  // The mixer's rows, which no W_o follows: it has its own weights.
  Var mixed(const Var& from, const Mask& mask, const Var& residual, HandedOn* handed) const {
    const Var received = handed && config.receives ? handed->by(config) : Var();
    const CarryingMixer::Passed passed = carrying
                                             ? carrying->pass(from, received, mask)
                                             : CarryingMixer::Passed{mixer->mix(from, mask), {}};
    if (carrying && handed) handed->by(config) = passed.handed;
    const auto value_of = [](const Var& x) { return x.defined() ? x.value() : Tensor(); };
    if (config.watch)
      config.watch({mixer,
                    {},
                    {},
                    from.value(),
                    {},
                    mask,
                    passed.out.value(),
                    value_of(received),
                    value_of(passed.handed)});
    return residual.defined() ? add(residual, passed.out) : passed.out;
  }
  // What stands inside the norm, of `from`, with the residual added where it is defined.
  Var inside(const Var& from, const Var& source, const Mask& mask, const Var& residual,
             HandedOn* handed) const {
    if (mixer) return mixed(from, mask, residual, handed);
    return linear_from_heads(attended(projected(from, source, 0), mask), w_o.value, residual);
  }
  // Of the projections around the attention.
  std::vector<Weight> projections() const {
    std::vector<Weight> all;
    for (const Weight& weight : {w_q, w_k, w_v, w_o})
      if (weight.value.defined()) all.push_back(weight);
    for (Weight& weight : gates.weights()) all.push_back(std::move(weight));
    return all;
  }
  // Adds the attention's own, their names behind `prefix`.
  void add_own(const std::string& prefix, std::vector<Weight>& all) const {
    for (Weight& weight : attention->weights())
      all.push_back({prefix + weight.name, std::move(weight.value), weight.learned, weight.moved});
  }

  LayerConfig config;
  std::string role;
  std::unique_ptr<Attention> attention;
  const Mixer* mixer;             // the attention, where it is one, else null
  const CarryingMixer* carrying;  // the same, where it hands something on, else null
  const DistanceBiased* biased;   // the attention, where positions are biases, else null
  // [width, width or kv_heads · head_dim]; undefined where nothing reads them
  Weight w_q, w_k, w_v, w_o;
  GateProjections gates;
  Tensor rotary_angles;  // [max_len, head_dim] where positions are rotary
  Weight gain, bias;     // [width]
};

AttentionBlock::AttentionBlock(const LayerConfig& config, const std::string& role)
    : state_(std::make_unique<State>(config, role)) {}
AttentionBlock::~AttentionBlock() = default;

Var AttentionBlock::forward(const Var& x, const Var& memory, const Mask& mask, Rng* dropout,
                            HandedOn* handed) const {
  const State& s = *state_;
  const Var from = s.before(x);
  const Var& source = memory.defined() ? memory : from;
  ATTN_CHECK(!s.mixer || !memory.defined(), "a mixer has no cross-attention");
  ATTN_CHECK((!s.rotary_angles.defined() && !s.biased) || !memory.defined(),
             "rotary positions and biases of distances are of self-attention");
  ATTN_CHECK(s.mixer || s.w_q.value.defined() || !memory.defined(),
             "cross-attention of {}, which reads no queries", s.config.variant->name);
  return s.after(added(x, s.config.dropout, dropout, [&](const Var& residual) {
    return s.inside(from, source, mask, residual, handed);
  }));
}

Var AttentionBlock::bare(const Var& x, const Mask& mask) const {
  return state_->inside(x, x, mask, {}, nullptr);
}

std::vector<Weight> AttentionBlock::bare_weights() const {
  std::vector<Weight> all = state_->projections();
  state_->add_own(state_->mixer ? "" : "mixer.", all);
  return all;
}

AttentionBlock::KeysValues AttentionBlock::project(const Var& memory) const {
  const Var values = state_->to_kv_heads(memory, state_->w_v);
  return {state_->w_k.value.defined() ? state_->to_kv_heads(memory, state_->w_k) : values, values};
}

Var AttentionBlock::answer(const Var& x, const KeysValues& memory, const Mask& mask) const {
  const State& s = *state_;
  const Var q = s.to_heads(s.before(x), s.w_q);
  const Var found = s.attended({q, memory.keys, memory.values}, mask);
  return s.after(linear_from_heads(found, s.w_o.value, x));
}

std::unique_ptr<Decoder> AttentionBlock::decoder(int64_t batch, int64_t capacity) const {
  const State& s = *state_;
  if (!s.biased) return s.attention->decoder(batch, capacity, s.config.kv_heads);
  const int64_t heads = s.config.heads, kept = s.kv_heads();
  return s.biased->biased_decoder({batch, kept, heads / kept, s.config.width / heads}, capacity,
                                  s.config.distances->past(capacity));
}

Var AttentionBlock::step(const Var& x, Decoder& decoder, HandedOn* handed) const {
  const State& s = *state_;
  const Var from = s.before(x);
  if (s.mixer) {
    const int64_t heads = s.config.heads;
    const Tensor row = from.value().reshaped({x.dim(0), heads, 1, s.config.width / heads});
    const Tensor found(row.shape());
    auto* const carrying = s.carrying ? &dynamic_cast<CarryingDecoder&>(decoder) : nullptr;
    if (carrying && handed && s.config.receives) carrying->receive(handed->by(s.config).value());
    decoder.step(row, row, row, found);
    if (carrying && handed) handed->by(s.config) = Var(carrying->take_handed());
    return s.after(add(x, Var(found.reshaped(x.shape()))));
  }
  const State::Projected heads = s.projected(from, from, decoder.length());
  const Tensor found(heads.q.shape());
  decoder.step(heads.q.value(), heads.k.value(), heads.v.value(), found, values_of(heads.gates));
  return s.after(linear_from_heads(Var(found), s.w_o.value, x));
}

std::vector<Weight> AttentionBlock::weights() const {
  const State& s = *state_;
  std::vector<Weight> all = {s.gain, s.bias};
  for (Weight& weight : s.projections()) all.push_back(std::move(weight));
  s.add_own(s.role + "attention.", all);
  return all;
}

const Attention& AttentionBlock::attention() const { return *state_->attention; }

}  // namespace attn
