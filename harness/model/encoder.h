// The Transformer encoder for training and timing. The model is the same for every variant except
// for the attention. Vaswani et al. 2017, arXiv:1706.03762; pre-norm as in Xiong et al. 2020,
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

enum class Positions { none, sinusoidal, learned, rotary, alibi, t5, kerple, kerple_power };
// The bias of distances that these positions are; none: they are no bias.
Distances distances_of(Positions positions);
enum class Pooling { cls, mean };

struct ModelConfig {
  LayerConfig layer;  // width, heads, kv_heads, feed-forward, norm, dropout, variant
  int64_t layers = 2;
  int64_t vocab = 0;     // number of token ids; 0: real values, embedded linearly
  int64_t channels = 1;  // real values per position if vocab is 0
  int64_t length =
      1;  // of the longest sequence, without the cls vector (pooling = cls and not per_token)
  int64_t classes = 2;
  bool per_token = false;  // logits per position instead of one per sequence
  // An example is two documents. The layers encode each to one vector; harness/model/pair_head.h,
  // with hidden widths feed_forward and feed_forward / 2, maps both vectors to logits.
  bool pairs = false;
  // per_token, and all logits are computed from the vector of the last position; see
  // harness/model/unfold_head.h.
  bool compressed = false;
  Positions positions = Positions::learned;
  Pooling pooling = Pooling::mean;
  uint64_t seed = 0;  // of the initial weights
};

// The bias that the model's positions are; null: they are none.
std::shared_ptr<const DistanceBias> distance_bias(const ModelConfig& model, bool causal);

// The inputs and labels of `size` examples with `documents` sequences each, padded to `length`.
struct Batch {
  int64_t size = 0, length = 0;
  std::vector<int32_t> tokens;   // [size, documents, length], or empty
  std::vector<float> values;     // [size, documents, length, channels], or empty
  std::vector<int64_t> lengths;  // [size, documents]; empty: all are `length`
  // [size] or [size, length], with kIgnoredLabel where there is no label; or output sequences
  // [size, outputs], padded with kIgnoredLabel; or empty.
  std::vector<int32_t> targets;
  int64_t documents = 1;                 // 2 for pairs
  std::vector<int32_t> distances{};      // [size] or [size, length]; -1: unknown
  std::vector<float> wanted{};           // [size], the numbers to predict; or empty
  std::shared_ptr<const Edges> edges{};  // the visible keys of each query; null: all keys
  // Numbers to group scores by, of the test split alone: of each example [size], where NaN is none,
  // and of each label [size, length], where -1 is none.
  std::map<std::string, std::vector<double>> slices{};
  std::map<std::string, std::vector<int32_t>> label_slices{};

  int64_t sequences() const { return size * documents; }
};

class Encoder {
 public:
  explicit Encoder(const ModelConfig& config);
  ~Encoder();
  // -> logits [size, classes], or [size, length, classes] if per_token. Null `dropout`: evaluation.
  Var forward(const Batch& batch, Rng* dropout = nullptr) const;
  // The logits of forward() for the labels of the batch only: logits [labels, classes], and the
  // ascending indices of these labels in batch.targets. The head computes no other logits.
  struct Scored {
    Var logits;
    std::vector<int32_t> entries;
  };
  Scored scored(const Batch& batch, Rng* dropout = nullptr) const;
  // Bytes of the decode states of all layers for one sequence of `length` positions, cached in
  // `cache`, of which the first `prompt` are appended at once; nullopt if a layer cannot decode.
  std::optional<int64_t> state_bytes(int64_t length, CacheType cache = CacheType::float32,
                                     int64_t prompt = 0) const;
  std::vector<Weight> weights() const;  // all weights, learned or not, with unique names
  int64_t parameter_count() const;      // of learned numbers
  const ModelConfig& config() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
