// Multi-head attention and a GELU feed-forward, with norms, dropout and residuals. Vaswani et al.
// 2017, arXiv:1706.03762, section 3. Time O(n·width·(4·width + 2·hidden)), and the attention's own.
#include "harness/model/residual_blocks.h"

#include <utility>

#include "core/ops.h"
#include "harness/model/weights.h"

namespace attn {

namespace {

// residual + dropout(block), the sum fused into the block where nothing is dropped.
template <class Block>
Var added(const Var& residual, double dropout, Rng* stream, const Block& block) {
  if (!stream || dropout == 0) return block(residual);
  return add(residual, attn::dropout(block(Var()), dropout, *stream));
}

void check_config(const LayerConfig& config) {
  ATTN_CHECK(config.variant, "a layer needs an attention variant");
  ATTN_CHECK(config.heads >= 1 && config.width >= 1 && config.width % config.heads == 0,
             "width {} is not a multiple of heads {}", config.width, config.heads);
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
  attention.seed = rng(config.seed, role + "attention").bits();
  const MemoryScope scope(Purpose::weights);
  return config.variant->build(std::move(attention), config.variant_params);
}

}  // namespace

// The projections have no bias, as in Long Range Arena's base model; the feed-forward has.
struct AttentionBlock::State {
  State(const LayerConfig& given, const std::string& block)
      : config(given),
        role(block),
        attention(build_attention(given, role)),
        w_q(glorot_weight(role + "W_q", given.width, given.width, given.seed)),
        w_k(glorot_weight(role + "W_k", given.width, given.width, given.seed)),
        w_v(glorot_weight(role + "W_v", given.width, given.width, given.seed)),
        w_o(glorot_weight(role + "W_o", given.width, given.width, given.seed)),
        gain(constant_weight(role + "attention_norm.gain", {given.width}, 1)),
        bias(constant_weight(role + "attention_norm.bias", {given.width}, 0)) {}

  Var norm(const Var& x) const { return layer_norm(x, gain.value, bias.value); }
  bool pre() const { return config.norm == Norm::pre; }
  Var before(const Var& x) const { return pre() ? norm(x) : x; }
  Var after(const Var& sum) const { return pre() ? sum : norm(sum); }
  Var heads(const Var& x, const Weight& weight) const {
    return linear_to_heads(x, weight.value, config.heads);  // [batch, heads, len, head_dim]
  }

  LayerConfig config;
  std::string role;
  std::unique_ptr<Attention> attention;
  Weight w_q, w_k, w_v, w_o;  // [width, width]
  Weight gain, bias;          // [width]
};

AttentionBlock::AttentionBlock(const LayerConfig& config, const std::string& role)
    : state_(std::make_unique<State>(config, role)) {}
AttentionBlock::~AttentionBlock() = default;

Var AttentionBlock::forward(const Var& x, const Var& memory, const Mask& mask, Rng* dropout) const {
  const State& s = *state_;
  const Var from = s.before(x);
  const Var& source = memory.defined() ? memory : from;
  return s.after(added(x, s.config.dropout, dropout, [&](const Var& residual) {
    const Var q = s.heads(from, s.w_q), k = s.heads(source, s.w_k), v = s.heads(source, s.w_v);
    return linear_from_heads(s.attention->forward(q, k, v, mask), s.w_o.value, residual);
  }));
}

AttentionBlock::KeysValues AttentionBlock::project(const Var& memory) const {
  return {state_->heads(memory, state_->w_k), state_->heads(memory, state_->w_v)};
}

Var AttentionBlock::answer(const Var& x, const KeysValues& memory, const Mask& mask) const {
  const State& s = *state_;
  const Var q = s.heads(s.before(x), s.w_q);
  const Var found = s.attention->forward(q, memory.keys, memory.values, mask);
  return s.after(linear_from_heads(found, s.w_o.value, x));
}

Var AttentionBlock::step(const Var& x, Decoder& decoder) const {
  const State& s = *state_;
  const Var from = s.before(x);
  const Var q = s.heads(from, s.w_q), k = s.heads(from, s.w_k), v = s.heads(from, s.w_v);
  const Tensor found(q.shape());
  decoder.step(q.value(), k.value(), v.value(), found);
  return s.after(linear_from_heads(Var(found), s.w_o.value, x));
}

std::vector<Weight> AttentionBlock::weights() const {
  const State& s = *state_;
  std::vector<Weight> all = {s.gain, s.bias, s.w_q, s.w_k, s.w_v, s.w_o};
  for (Weight& weight : s.attention->weights())
    all.push_back({s.role + "attention." + weight.name, std::move(weight.value), weight.learned});
  return all;
}

const Attention& AttentionBlock::attention() const { return *state_->attention; }

FeedForwardBlock::FeedForwardBlock(const LayerConfig& given)
    : norm_(given.norm),
      dropout_(given.dropout),
      gain_(constant_weight("feed_forward_norm.gain", {given.width}, 1)),
      bias_(constant_weight("feed_forward_norm.bias", {given.width}, 0)),
      hidden_(glorot_weight("feed_forward.hidden", given.width, given.feed_forward, given.seed)),
      hidden_bias_(constant_weight("feed_forward.hidden_bias", {given.feed_forward}, 0)),
      output_(glorot_weight("feed_forward.output", given.feed_forward, given.width, given.seed)),
      output_bias_(constant_weight("feed_forward.output_bias", {given.width}, 0)) {}

Var FeedForwardBlock::forward(const Var& x, Rng* dropout) const {
  const bool pre = norm_ == Norm::pre;
  const Var from = pre ? layer_norm(x, gain_.value, bias_.value) : x;
  const Var sum = added(x, dropout_, dropout, [&](const Var& residual) {
    return attn::feed_forward(
        from, {hidden_.value, hidden_bias_.value, output_.value, output_bias_.value}, residual);
  });
  return pre ? sum : layer_norm(sum, gain_.value, bias_.value);
}

std::vector<Weight> FeedForwardBlock::weights() const {
  return {gain_, bias_, hidden_, hidden_bias_, output_, output_bias_};
}

}  // namespace attn
