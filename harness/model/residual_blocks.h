// What layers are made of: multi-head attention, or a mixer in its place, and a feed-forward, each
// with its norm, dropout and the residual around it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "variants/api/variant_info.h"

namespace attn {

enum class Norm { pre, post };

struct LayerConfig {
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> variant_params;  // as given; defaults are filled in
  int64_t width = 64;                                // d_model
  int64_t heads = 2;                                 // head_dim = width / heads
  // Heads of keys and values, each for heads / kv_heads query heads; 0: as many as heads. Shazeer
  // 2019, arXiv:1911.02150; Ainslie et al. 2023, arXiv:2305.13245.
  int64_t kv_heads = 0;
  bool rotary = false;         // queries and keys of self-attention are rotated by their positions
  int64_t feed_forward = 256;  // hidden width
  int64_t max_len = 1;         // longest sequence the attention sees
  bool causal = false;
  Norm norm = Norm::pre;
  double dropout = 0;  // on the outputs of attention and feed-forward
  uint64_t seed = 0;
};

class AttentionBlock {
 public:
  // `role` comes before the names of its weights: "" of the one block of a layer, "cross." of a
  // second one.
  AttentionBlock(const LayerConfig& config, const std::string& role);
  ~AttentionBlock();

  // x [batch, q_len, width] -> the same shape. Keys and values come from `memory` [batch, kv_len,
  // width], which is taken as it is, or, where that is undefined, from x after the block's norm.
  // `dropout` null: evaluation.
  Var forward(const Var& x, const Var& memory, const Mask& mask, Rng* dropout) const;

  struct KeysValues {
    Var keys, values;  // [batch, kv_heads, kv_len, head_dim]
  };
  KeysValues project(const Var& memory) const;
  // forward() in evaluation where `memory` is projected already.
  Var answer(const Var& x, const KeysValues& memory, const Mask& mask) const;
  // For `capacity` positions of `batch` sequences; keeps keys and values of kv_heads heads.
  std::unique_ptr<Decoder> decoder(int64_t batch, int64_t capacity) const;
  // forward() of one more position, x [batch, 1, width], of what such a decoder has seen: not
  // recorded, no dropout.
  Var step(const Var& x, Decoder& decoder) const;

  std::vector<Weight> weights() const;
  const Attention& attention() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class FeedForwardBlock {
 public:
  explicit FeedForwardBlock(const LayerConfig& config);
  Var forward(const Var& x, Rng* dropout) const;  // [batch, len, width] -> the same
  std::vector<Weight> weights() const;

 private:
  Norm norm_;
  double dropout_;
  Weight gain_, bias_;           // [width]
  Weight hidden_, hidden_bias_;  // [width, hidden], [hidden]
  Weight output_, output_bias_;  // [hidden, width], [width]
};

}  // namespace attn
