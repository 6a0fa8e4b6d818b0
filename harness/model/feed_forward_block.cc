// The feed-forward of a layer with norm, dropout and residual: GELU (Vaswani et al. 2017,
// arXiv:1706.03762, section 3.3), or channel mixing (Peng et al. 2024, arXiv:2404.05892; Peng et
// al. 2025, arXiv:2503.14456). Time 4·n·width·hidden, of a gate 2·n·width² more.
#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "harness/model/residual.h"
#include "harness/model/residual_blocks.h"
#include "harness/model/weights.h"

namespace attn {
namespace {

// Of channel c: 1 - c/width, with which BlinkDL's code starts its first layer.
Weight share_of_before(const std::string& name, int64_t width) {
  const Weight share = constant_weight(name, {width}, 0);
  const Tensor start({width});
  for (int64_t c = 0; c < width; ++c)
    start[c] = static_cast<real>(1 - static_cast<double>(c) / static_cast<double>(width));
  share.value.set_value(start);
  return share;
}

// The row of the position before, zeros before the first one.
Var rows_before(const Var& x) { return short_convolution(x, previous_taps(x.dim(2)), {}, false); }

}  // namespace

FeedForwardBlock::FeedForwardBlock(const LayerConfig& given)
    : kind_(given.variant->feed_forward), norm_(given.norm), dropout_(given.dropout) {
  if (kind_ == FeedForward::none) return;
  gain_ = constant_weight("feed_forward_norm.gain", {given.width}, 1);
  bias_ = constant_weight("feed_forward_norm.bias", {given.width}, 0);
  hidden_ = glorot_weight("feed_forward.hidden", given.width, given.feed_forward, given.seed);
  output_ = glorot_weight("feed_forward.output", given.feed_forward, given.width, given.seed);
  if (!shifts()) {
    hidden_bias_ = constant_weight("feed_forward.hidden_bias", {given.feed_forward}, 0);
    output_bias_ = constant_weight("feed_forward.output_bias", {given.width}, 0);
    return;
  }
  mix_ = share_of_before("feed_forward.mix", given.width);
  if (kind_ == FeedForward::squared) return;
  gate_mix_ = share_of_before("feed_forward.gate_mix", given.width);
  gate_ = glorot_weight("feed_forward.gate", given.width, given.width, given.seed);
}

// relu(x'·W_k)²·W_v, and times σ(x''·W_r) where the kind has a gate.
Var FeedForwardBlock::channels(const Var& from, const Var& before) const {
  const Var hidden = linear(mix_rows(from, before, mix_.value, {}), hidden_.value, {});
  const Var mixed = linear(square(relu(hidden)), output_.value, {});
  if (kind_ == FeedForward::squared) return mixed;
  const Var gate = linear(mix_rows(from, before, gate_mix_.value, {}), gate_.value, {});
  return multiply(mixed, sigmoid(gate));
}

// `before_of` makes the rows before of what the block reads.
template <class Before>
Var FeedForwardBlock::around(const Var& x, Rng* dropout, const Before& before_of) const {
  if (kind_ == FeedForward::none) return x;
  const bool pre = norm_ == Norm::pre;
  const Var from = pre ? layer_norm(x, gain_.value, bias_.value) : x;
  const Var sum = added(x, dropout_, dropout, [&](const Var& residual) {
    if (!shifts())
      return attn::feed_forward(
          from, {hidden_.value, hidden_bias_.value, output_.value, output_bias_.value}, residual);
    const Var mixed = channels(from, before_of(from));
    return residual.defined() ? add(residual, mixed) : mixed;
  });
  return pre ? sum : layer_norm(sum, gain_.value, bias_.value);
}

Var FeedForwardBlock::forward(const Var& x, Rng* dropout) const {
  return around(x, dropout, rows_before);
}

Var FeedForwardBlock::step(const Var& x, Tensor& before) const {
  const NoGrad no_grad;
  return around(x, nullptr, [&](const Var& from) {
    const Var last(before.defined() ? before : Tensor::zeros(from.shape()));
    before = from.value();
    return last;
  });
}

int64_t FeedForwardBlock::state_bytes(int64_t batch) const {
  return shifts() ? batch * mix_.value.value().size() * static_cast<int64_t>(sizeof(real)) : 0;
}

std::vector<Weight> FeedForwardBlock::weights() const {
  std::vector<Weight> all;
  for (const Weight& weight :
       {gain_, bias_, hidden_, hidden_bias_, output_, output_bias_, mix_, gate_mix_, gate_})
    if (weight.value.defined()) all.push_back(weight);
  return all;
}

}  // namespace attn
