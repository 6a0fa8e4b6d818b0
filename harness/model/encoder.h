// The Transformer encoder that every variant is trained and timed in: the same model, only the
// attention differs. Vaswani et al. 2017, arXiv:1706.03762; pre-norm as in Xiong et al. 2020,
// arXiv:2002.04745.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/layer.h"

namespace attn {

enum class Positions { none, sinusoidal, learned, rotary };
enum class Pooling { cls, mean };

struct ModelConfig {
  LayerConfig layer;  // width, heads, kv_heads, feed-forward, norm, dropout, variant
  int64_t layers = 2;
  int64_t vocab =
      0;  // token embedding of that many ids; 0: one real value per position, embedded linearly
  int64_t channels = 1;  // real values per position, where vocab is 0
  int64_t length =
      1;  // longest sequence (a cls vector is prepended to it when pooling = cls and not per_token)
  int64_t classes = 2;
  bool per_token = false;  // logits per position instead of one per sequence
  // Two documents an example: both through the same layers, one vector each, then
  // harness/model/pair_head.h with hidden widths feed_forward and feed_forward / 2.
  bool pairs = false;
  // Per token, but all labels are read from the last position's vector: the logits of position p
  // come from that vector and p, see harness/model/unfold_head.h.
  bool compressed = false;
  Positions positions = Positions::learned;
  Pooling pooling = Pooling::mean;
  uint64_t seed = 0;  // of the initial weights
};

// Inputs of `size` examples of `documents` sequences, each padded to `length`.
struct Batch {
  int64_t size = 0, length = 0;
  std::vector<int32_t> tokens;   // [size, documents, length], or empty
  std::vector<float> values;     // [size, documents, length, channels], or empty
  std::vector<int64_t> lengths;  // [size, documents]; empty: all full
  // [size] or [size, length], kIgnoredLabel is not scored; or output sequences [size, outputs],
  // filled up with kIgnoredLabel; or empty.
  std::vector<int32_t> targets;
  int64_t documents = 1;                 // 2 for a model of pairs
  std::vector<int32_t> distances{};      // [size] or [size, length], -1 where not known
  std::vector<float> wanted{};           // [size], the numbers to predict; else empty
  std::shared_ptr<const Edges> edges{};  // who may see whom; null: everyone

  int64_t sequences() const { return size * documents; }
};

class Encoder {
 public:
  explicit Encoder(const ModelConfig& config);
  ~Encoder();
  // -> logits [size, classes], or [size, length, classes] if per_token. `dropout` null: evaluation.
  Var forward(const Batch& batch, Rng* dropout = nullptr) const;
  // What forward gives where batch.targets is scored, and nothing else is computed by the head:
  // logits [scored, classes], and the entries of `targets` that they answer, ascending.
  struct Scored {
    Var logits;
    std::vector<int32_t> entries;
  };
  Scored scored(const Batch& batch, Rng* dropout = nullptr) const;
  // By one sequence of `length` positions, over all layers; nullopt: a layer cannot decode.
  std::optional<int64_t> state_bytes(int64_t length) const;
  std::vector<Weight> weights() const;  // every weight with a unique name; learned ones are trained
  int64_t parameter_count() const;      // learned numbers
  const ModelConfig& config() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
