// The blocks of a layer: multi-head attention (or a mixer) and feed-forward, each with layer norm,
// dropout and a residual connection.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/distance_bias.h"
#include "variants/api/variant_info.h"

namespace attn {

enum class Norm { pre, post };

// What an attention read and answered in a forward pass: [batch, heads, len, head_dim], each query
// head with its own keys and values, as after rotary positions. Of a mixer, `v` and `out` are rows
// [batch, len, width], and q and k are undefined.
struct AttentionPass {
  const Attention* attention = nullptr;
  Tensor q, k, v;
  std::vector<Tensor> gates;
  Mask mask;
  Tensor out;
  // Of a mixer that hands something on (variants/api/carrying.h): what it was given, undefined in
  // the first layer of its variant, and what it handed on.
  Tensor received = {}, handed = {};
};
// Is told of each forward pass, but of those with biases of distances.
using AttentionWatch = std::function<void(const AttentionPass&)>;

struct LayerConfig {
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> variant_params;  // as given, without defaults
  int64_t width = 64;                                // d_model
  int64_t heads = 2;                                 // head_dim = width / heads
  // Heads of keys and values, each shared by heads / kv_heads query heads; 0 means `heads`. Shazeer
  // 2019, arXiv:1911.02150; Ainslie et al. 2023, arXiv:2305.13245.
  int64_t kv_heads = 0;
  bool rotary = false;  // rotary positions for queries and keys of self-attention
  // Relative positions of self-attention, shared by all layers; null: none.
  std::shared_ptr<const DistanceBias> distances = {};
  int64_t feed_forward = 256;  // hidden width
  int64_t max_len = 1;         // of the longest sequence
  bool causal = false;
  Norm norm = Norm::pre;
  double dropout = 0;  // on the outputs of attention and feed-forward
  AttentionWatch watch = {};
  uint64_t seed = 0;
  int64_t layer = 0;      // of a model, from 0 on
  bool receives = false;  // see receives_at() in variants/api/stack.h
};
class HandedOn;  // harness/model/handed_on.h

// The reason why query heads cannot share keys and values of kv_heads heads; nullopt: they can, or
// kv_heads is 0 and none are shared.
std::optional<std::string> why_no_sharing(const VariantInfo& variant, int64_t heads,
                                          int64_t kv_heads);

// The configuration of layer `index`: of a stack, its variant; where that has no queries and keys,
// without rotary positions and kv_heads, which are then of the other layers.
LayerConfig layer_config_at(const LayerConfig& model, int64_t index);

class AttentionBlock {
 public:
  // `role` is the prefix of the names of its weights: "" for the first attention block of a layer,
  // "cross." for a second.
  AttentionBlock(const LayerConfig& config, const std::string& role);
  ~AttentionBlock();

  // x [batch, q_len, width] -> the same shape. Keys and values are projections of `memory` [batch,
  // kv_len, width], without layer norm; if `memory` is undefined, of x after layer norm. Null
  // `dropout`: evaluation. `handed` is of the model's pass: it gives what earlier layers handed on
  // and gets what this one does; null: the layer stands alone, and cannot receive.
  Var forward(const Var& x, const Var& memory, const Mask& mask, Rng* dropout,
              HandedOn* handed = nullptr) const;

  struct KeysValues {
    Var keys, values;  // [batch, kv_heads, kv_len, head_dim]
  };
  KeysValues project(const Var& memory) const;
  // forward() in evaluation, for the result of project().
  Var answer(const Var& x, const KeysValues& memory, const Mask& mask) const;
  // A decoder for at most `capacity` positions of `batch` sequences, with kv_heads heads of keys.
  std::unique_ptr<Decoder> decoder(int64_t batch, int64_t capacity) const;
  // forward() of the next position of the decoder, x [batch, 1, width]. Records no gradients and
  // has no dropout. `handed` is of this position alone.
  Var step(const Var& x, Decoder& decoder, HandedOn* handed = nullptr) const;

  // What stands inside norm and residual: the projections, the attention and W_o, or the mixer, of
  // x [batch, len, width]. And its weights: of a mixer that reads rows, by the mixer's own names;
  // else those of the attention as "mixer.NAME", as in a paper's layer.
  Var bare(const Var& x, const Mask& mask) const;
  std::vector<Weight> bare_weights() const;

  std::vector<Weight> weights() const;
  const Attention& attention() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The variant says its kind (VariantInfo::feed_forward); of kind none it passes rows as they are,
// and has neither norm nor weights.
class FeedForwardBlock {
 public:
  explicit FeedForwardBlock(const LayerConfig& config);
  Var forward(const Var& x, Rng* dropout) const;  // [batch, len, width] -> the same

  // Decoding: forward() of the next position, x [batch, 1, width], in evaluation. `before` is the
  // normed row of the position before, where the kind shifts tokens; undefined: there is none.
  Var step(const Var& x, Tensor& before) const;
  int64_t state_bytes(int64_t batch) const;  // of that row

  std::vector<Weight> weights() const;

 private:
  bool shifts() const {
    return kind_ == FeedForward::squared || kind_ == FeedForward::gated_squared;
  }
  Var channels(const Var& from, const Var& before) const;
  template <class Before>
  Var around(const Var& x, Rng* dropout, const Before& before_of) const;

  FeedForward kind_;
  Norm norm_;
  double dropout_;
  Weight gain_, bias_;           // [width]
  Weight hidden_, hidden_bias_;  // [width, hidden], [hidden]
  Weight output_, output_bias_;  // [hidden, width], [width]
  // Of channel mixing: shares of the row before [width], and the gate's matrix [width, width].
  Weight mix_, gate_mix_, gate_;
};

}  // namespace attn
