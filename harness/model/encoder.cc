// The Transformer encoder that every variant is trained and timed in: embedding, layers, pooling,
// head. Vaswani et al. 2017, arXiv:1706.03762; pre-norm (with a last norm) as in Xiong et al. 2020,
// arXiv:2002.04745.
#include "harness/model/encoder.h"

#include <optional>
#include <utility>

#include "core/ops.h"
#include "harness/model/embedding.h"
#include "harness/model/pair_head.h"
#include "harness/model/weights.h"

namespace attn {

struct Encoder::State {
  explicit State(const ModelConfig& given) : config(given), input(given) {
    const LayerConfig& layer = config.layer;
    for (int64_t i = 0; i < config.layers; ++i) {
      LayerConfig own = layer;
      own.max_len = config.length + (input.has_cls() ? 1 : 0);
      own.seed = rng(config.seed, "layer", static_cast<uint64_t>(i)).bits();
      layers.push_back(std::make_unique<Layer>(own));
    }
    if (layer.norm == Norm::pre) {
      gain = constant_weight("norm.gain", {layer.width}, 1);
      bias = constant_weight("norm.bias", {layer.width}, 0);
    }
    if (config.pairs) {
      pair_head.emplace(layer.width, layer.feed_forward, config.classes, config.seed);
      return;
    }
    head = glorot_weight("head", layer.width, config.classes, config.seed);
    head_bias = constant_weight("head_bias", {config.classes}, 0);
  }

  // [sequences, len, width] -> what the head reads: the same if per_token, else [sequences, width].
  Var pooled(const Var& x, const std::vector<int64_t>& lengths) const {
    if (config.per_token) return x;
    if (config.pooling == Pooling::mean) return mean_positions(x, lengths);
    return reshape(slice(x, 1, 0, 1), {x.dim(0), x.dim(2)});
  }

  ModelConfig config;
  InputEmbedding input;
  std::vector<std::unique_ptr<Layer>> layers;
  Weight gain, bias;       // [width], pre-norm only
  Weight head, head_bias;  // [width, classes], [classes]; not of pairs
  std::optional<PairHead> pair_head;
};

namespace {

const ModelConfig& checked(const ModelConfig& config) {
  ATTN_CHECK(config.layers >= 1 && config.length >= 1 && config.classes >= 1,
             "a model needs layers, length and classes of at least 1, got {}, {} and {}",
             config.layers, config.length, config.classes);
  ATTN_CHECK(!(config.layer.causal && config.pooling == Pooling::cls && !config.per_token),
             "a causal model cannot pool with cls: the first position sees nothing but itself");
  ATTN_CHECK(!(config.pairs && config.per_token), "a pair of documents has no label per position");
  return config;
}

}  // namespace

Encoder::Encoder(const ModelConfig& config) : state_(std::make_unique<State>(checked(config))) {}
Encoder::~Encoder() = default;

Var Encoder::forward(const Batch& batch, Rng* dropout) const {
  const State& s = *state_;
  ATTN_CHECK(batch.documents == (s.config.pairs ? 2 : 1),
             "a batch of {} documents an example for a model of {}", batch.documents,
             s.config.pairs ? "pairs" : "single sequences");
  ATTN_CHECK(
      batch.lengths.empty() || batch.lengths.size() == static_cast<size_t>(batch.sequences()),
      "a batch of {} sequences has {} lengths", batch.sequences(), batch.lengths.size());
  std::vector<int64_t> lengths = batch.lengths;
  if (s.input.has_cls())
    for (int64_t& length : lengths) ++length;
  Var x = s.input.forward(batch);  // [sequences, len, width]
  if (dropout && s.config.layer.dropout > 0) x = attn::dropout(x, s.config.layer.dropout, *dropout);
  for (const auto& layer : s.layers) x = layer->forward(x, lengths, dropout);
  if (s.gain.value.defined()) x = layer_norm(x, s.gain.value, s.bias.value);
  const Var read = s.pooled(x, lengths);
  return s.pair_head ? s.pair_head->forward(read) : linear(read, s.head.value, s.head_bias.value);
}

std::vector<Weight> Encoder::weights() const {
  const State& s = *state_;
  std::vector<Weight> all;
  for (Weight& weight : s.input.weights())
    all.push_back({"input." + weight.name, std::move(weight.value), weight.learned});
  for (size_t i = 0; i < s.layers.size(); ++i)
    for (Weight& weight : s.layers[i]->weights())
      all.push_back(
          {fmt::format("layers.{}.{}", i, weight.name), std::move(weight.value), weight.learned});
  if (s.gain.value.defined()) all.insert(all.end(), {s.gain, s.bias});
  if (!s.pair_head) {
    all.insert(all.end(), {s.head, s.head_bias});
    return all;
  }
  for (Weight& weight : s.pair_head->weights()) all.push_back(std::move(weight));
  return all;
}

int64_t Encoder::parameter_count() const {
  int64_t count = 0;
  for (const Weight& weight : weights())
    if (weight.learned) count += weight.value.value().size();
  return count;
}

const ModelConfig& Encoder::config() const { return state_->config; }

}  // namespace attn
