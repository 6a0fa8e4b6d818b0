// One encoder layer: multi-head attention and a GELU feed-forward, with residuals, norms and
// dropout. Vaswani et al. 2017, arXiv:1706.03762, section 3. Time O(n·width·(4·width + 2·hidden)),
// and the attention's own.
#include "harness/model/layer.h"

#include <utility>

#include "core/ops.h"
#include "harness/model/weights.h"

namespace attn {

namespace {

std::unique_ptr<Attention> build_attention(const LayerConfig& config) {
  ATTN_CHECK(config.variant, "a layer needs an attention variant");
  ATTN_CHECK(config.heads >= 1 && config.width >= 1 && config.width % config.heads == 0,
             "width {} is not a multiple of heads {}", config.width, config.heads);
  ATTN_CHECK(config.feed_forward >= 1, "feed_forward is {}, it must be at least 1",
             config.feed_forward);
  ATTN_CHECK(config.dropout >= 0 && config.dropout < 1, "dropout {} is outside [0, 1)",
             config.dropout);
  AttentionConfig attention;
  attention.heads = config.heads;
  attention.head_dim = config.width / config.heads;
  attention.max_len = config.max_len;
  attention.causal = config.causal;
  attention.seed = rng(config.seed, "attention").bits();
  const MemoryScope scope(Purpose::weights);
  return config.variant->build(std::move(attention), config.variant_params);
}

}  // namespace

// The projections have no bias, as in Long Range Arena's base model; the feed-forward has.
struct Layer::State {
  explicit State(const LayerConfig& given)
      : config(given),
        attention(build_attention(given)),
        w_q(glorot_weight("W_q", given.width, given.width, given.seed)),
        w_k(glorot_weight("W_k", given.width, given.width, given.seed)),
        w_v(glorot_weight("W_v", given.width, given.width, given.seed)),
        w_o(glorot_weight("W_o", given.width, given.width, given.seed)),
        attention_gain(constant_weight("attention_norm.gain", {given.width}, 1)),
        attention_bias(constant_weight("attention_norm.bias", {given.width}, 0)),
        hidden(glorot_weight("feed_forward.hidden", given.width, given.feed_forward, given.seed)),
        hidden_bias(constant_weight("feed_forward.hidden_bias", {given.feed_forward}, 0)),
        output(glorot_weight("feed_forward.output", given.feed_forward, given.width, given.seed)),
        output_bias(constant_weight("feed_forward.output_bias", {given.width}, 0)),
        feed_forward_gain(constant_weight("feed_forward_norm.gain", {given.width}, 1)),
        feed_forward_bias(constant_weight("feed_forward_norm.bias", {given.width}, 0)) {}

  // The residual, where there is one, is added while the result is in the cache.
  Var attend(const Var& x, const Mask& mask, const Var& residual) const {
    const Var q = linear_to_heads(x, w_q.value, config.heads);  // [batch, heads, len, head_dim]
    const Var k = linear_to_heads(x, w_k.value, config.heads);
    const Var v = linear_to_heads(x, w_v.value, config.heads);
    return linear_from_heads(attention->forward(q, k, v, mask), w_o.value,
                             residual);  // [batch, len, width]
  }

  Var feed_forward(const Var& x, const Var& residual) const {  // [batch, len, width]
    return attn::feed_forward(x, {hidden.value, hidden_bias.value, output.value, output_bias.value},
                              residual);
  }

  Var attention_norm(const Var& x) const {
    return layer_norm(x, attention_gain.value, attention_bias.value);
  }
  Var feed_forward_norm(const Var& x) const {
    return layer_norm(x, feed_forward_gain.value, feed_forward_bias.value);
  }

  LayerConfig config;
  std::unique_ptr<Attention> attention;
  Weight w_q, w_k, w_v, w_o;              // [width, width]
  Weight attention_gain, attention_bias;  // [width]
  Weight hidden, hidden_bias, output,
      output_bias;  // [width, hidden], [hidden], [hidden, width], [width]
  Weight feed_forward_gain, feed_forward_bias;  // [width]
};

Layer::Layer(const LayerConfig& config) : state_(std::make_unique<State>(config)) {}
Layer::~Layer() = default;

Var Layer::forward(const Var& x, const std::vector<int64_t>& lengths, Rng* dropout) const {
  const State& s = *state_;
  ATTN_CHECK(x.shape().rank() == 3 && x.dim(2) == s.config.width,
             "a layer of width {} got an input of shape {}", s.config.width, x.shape().str());
  const Mask mask{s.config.causal, lengths};
  const double p = s.config.dropout;
  // residual + dropout(block), the sum fused into the block where nothing is dropped
  const auto added = [&](const Var& residual, const auto& block) {
    if (!dropout || p == 0) return block(residual);
    return add(residual, attn::dropout(block(Var()), p, *dropout));
  };
  const auto attend = [&](const Var& from, const Var& residual) {
    return added(residual, [&](const Var& sum) { return s.attend(from, mask, sum); });
  };
  const auto feed_forward = [&](const Var& from, const Var& residual) {
    return added(residual, [&](const Var& sum) { return s.feed_forward(from, sum); });
  };
  if (s.config.norm == Norm::pre) {
    const Var attended = attend(s.attention_norm(x), x);
    return feed_forward(s.feed_forward_norm(attended), attended);
  }
  const Var attended = s.attention_norm(attend(x, x));
  return s.feed_forward_norm(feed_forward(attended, attended));
}

std::vector<Weight> Layer::weights() const {
  const State& s = *state_;
  std::vector<Weight> all = {s.attention_gain, s.attention_bias, s.w_q, s.w_k, s.w_v, s.w_o};
  for (Weight& weight : s.attention->weights())
    all.push_back({"attention." + weight.name, std::move(weight.value), weight.learned});
  all.insert(all.end(), {s.feed_forward_gain, s.feed_forward_bias, s.hidden, s.hidden_bias,
                         s.output, s.output_bias});
  return all;
}

const Attention& Layer::attention() const { return *state_->attention; }

}  // namespace attn
