// The Transformer encoder for training and timing: embedding, layers, pooling, head. Vaswani et al.
// 2017, arXiv:1706.03762; pre-norm (with a last norm) as in Xiong et al. 2020, arXiv:2002.04745.
#include "harness/model/encoder.h"

#include <optional>
#include <utility>

#include "core/ops/ops.h"
#include "harness/model/decoded_rows.h"
#include "harness/model/embedding.h"
#include "harness/model/layer_stack.h"
#include "harness/model/pair_head.h"
#include "harness/model/unfold_head.h"
#include "harness/model/weights.h"
#include "variants/api/forgetting.h"

namespace attn {

Distances distances_of(Positions positions) {
  switch (positions) {
    case Positions::alibi:
      return Distances::alibi;
    case Positions::t5:
      return Distances::t5;
    case Positions::kerple:
      return Distances::kerple;
    case Positions::kerple_power:
      return Distances::kerple_power;
    default:
      return Distances::none;
  }
}

std::shared_ptr<const DistanceBias> distance_bias(const ModelConfig& model, bool causal) {
  const Distances kind = distances_of(model.positions);
  if (kind == Distances::none) return nullptr;
  return std::make_shared<const DistanceBias>(kind, model.layer.heads, causal, model.seed);
}

struct Encoder::State {
  explicit State(const ModelConfig& given)
      : config(given),
        distances(distance_bias(given, given.layer.causal)),
        input(given),
        stack(layer_config(), config.layers, config.seed) {
    const LayerConfig& layer = config.layer;
    if (config.pairs)
      pair_head.emplace(layer.width, layer.feed_forward, config.classes, config.seed);
    if (config.compressed)
      unfold_head.emplace(layer.width, layer.feed_forward, config.length, config.classes,
                          config.seed);
    if (pair_head || unfold_head) return;
    head = glorot_weight("head", layer.width, config.classes, config.seed);
    head_bias = constant_weight("head_bias", {config.classes}, 0);
  }

  LayerConfig layer_config() const {
    LayerConfig own = config.layer;
    own.max_len = config.length + (input.has_cls() ? 1 : 0);
    own.rotary = config.positions == Positions::rotary;
    own.distances = distances;
    return own;
  }

  // -> [sequences, len, width], where len counts the cls vector.
  Var encoded(const Batch& batch, const std::vector<int64_t>& lengths, Rng* dropout) const {
    Var x = input.forward(batch);
    if (dropout && config.layer.dropout > 0) x = attn::dropout(x, config.layer.dropout, *dropout);
    return stack.forward(std::move(x), lengths, dropout, batch.edges);
  }

  // [sequences, len, width] -> what the head reads: the same if per_token, else [sequences, width].
  Var pooled(const Var& x, const std::vector<int64_t>& lengths) const {
    if (config.compressed)
      return reshape(slice(x, 1, x.dim(1) - 1, x.dim(1)), {x.dim(0), x.dim(2)});
    if (config.per_token) return x;
    if (config.pooling == Pooling::mean) return mean_positions(x, lengths);
    return reshape(slice(x, 1, 0, 1), {x.dim(0), x.dim(2)});
  }

  // The lengths that attention sees.
  std::vector<int64_t> checked_lengths(const Batch& batch) const {
    ATTN_CHECK(batch.documents == (config.pairs ? 2 : 1),
               "a batch of {} documents an example for a model of {}", batch.documents,
               config.pairs ? "pairs" : "single sequences");
    ATTN_CHECK(
        batch.lengths.empty() || batch.lengths.size() == static_cast<size_t>(batch.sequences()),
        "a batch of {} sequences has {} lengths", batch.sequences(), batch.lengths.size());
    ATTN_CHECK(!config.compressed || (batch.lengths.empty() && batch.length == config.length),
               "a sequence is compressed at its full length of {}", config.length);
    std::vector<int64_t> lengths = batch.lengths;
    if (input.has_cls())
      for (int64_t& length : lengths) ++length;
    return lengths;
  }

  Var logits(const Var& read) const {
    if (pair_head) return pair_head->forward(read);
    if (unfold_head) return unfold_head->forward(read);
    return linear(read, head.value, head_bias.value);
  }

  ModelConfig config;
  std::shared_ptr<const DistanceBias> distances;  // null: positions are no bias
  InputEmbedding input;
  LayerStack stack;
  Weight head, head_bias;  // [width, classes], [classes]; or one of these:
  std::optional<PairHead> pair_head;
  std::optional<UnfoldHead> unfold_head;
};

namespace {

const ModelConfig& checked(const ModelConfig& config) {
  ATTN_CHECK(config.layers >= 1 && config.length >= 1 && config.classes >= 1,
             "a model needs layers, length and classes of at least 1, got {}, {} and {}",
             config.layers, config.length, config.classes);
  ATTN_CHECK(!(config.layer.causal && config.pooling == Pooling::cls && !config.per_token),
             "a causal model cannot pool with cls: the first position sees nothing but itself");
  ATTN_CHECK(!(config.pairs && config.per_token), "a pair of documents has no label per position");
  ATTN_CHECK(config.per_token || !config.compressed, "only labels per position can be compressed");
  return config;
}

}  // namespace

Encoder::Encoder(const ModelConfig& config) : state_(std::make_unique<State>(checked(config))) {}
Encoder::~Encoder() = default;

Var Encoder::forward(const Batch& batch, Rng* dropout) const {
  const State& s = *state_;
  const std::vector<int64_t> lengths = s.checked_lengths(batch);
  return s.logits(s.pooled(s.encoded(batch, lengths, dropout), lengths));
}

Encoder::Scored Encoder::scored(const Batch& batch, Rng* dropout) const {
  const State& s = *state_;
  const std::vector<int64_t> lengths = s.checked_lengths(batch);
  std::vector<int32_t> entries;
  for (size_t i = 0; i < batch.targets.size(); ++i)
    if (batch.targets[i] >= 0) entries.push_back(static_cast<int32_t>(i));
  const Var read = s.pooled(s.encoded(batch, lengths, dropout), lengths);
  const bool all = entries.size() == batch.targets.size();
  const auto gathered = [&](const Var& rows) {  // [.., n] -> [scored, n]
    const int64_t n = rows.dim(-1), count = rows.value().size() / n;
    ATTN_CHECK(count == std::ssize(batch.targets), "{} answers and {} targets", count,
               batch.targets.size());
    const Var flat = reshape(rows, {count, n});
    return all ? flat : embedding(flat, entries, {std::ssize(entries)});
  };
  const bool row_by_row = s.config.per_token && !s.config.compressed;
  return {row_by_row ? s.logits(gathered(read)) : gathered(s.logits(read)), entries};
}

std::optional<int64_t> Encoder::state_bytes(int64_t length, CacheType cache, int64_t prompt) const {
  const State& s = *state_;
  const LayerConfig& layer = s.config.layer;
  AttentionShape shape{1, layer.heads, length, length, layer.width / layer.heads, layer.causal};
  shape.cache = cache;
  if (!layer.causal) return std::nullopt;
  int64_t bytes = 0;
  for (size_t i = 0; i < s.stack.layers().size(); ++i) {
    const LayerConfig own = layer_config_at(layer, static_cast<int64_t>(i));
    const Attention& attention = s.stack.layers()[i]->attention();
    if (own.variant->why_no_decoder(shape, attention.config().params)) return std::nullopt;
    // Of a decoder that forgets, the formula is that of other prompts.
    bytes += prompt > 0 && as_forgetting(attention)
                 ? state_bytes_behind(prompt, attention, length, own.kv_heads)
                 : static_cast<int64_t>(attention.state_bytes(shape, own.kv_heads));
    bytes += s.stack.layers()[i]->feed_forward().state_bytes(1);
  }
  return bytes;
}

std::vector<Weight> Encoder::weights() const {
  const State& s = *state_;
  std::vector<Weight> all;
  for (Weight& weight : s.input.weights())
    all.push_back({"input." + weight.name, std::move(weight.value), weight.learned, weight.moved});
  if (s.distances)
    for (const Weight& weight : s.distances->weights()) all.push_back(weight);
  for (Weight& weight : s.stack.weights()) all.push_back(std::move(weight));
  std::vector<Weight> head = {s.head, s.head_bias};
  if (s.pair_head) head = s.pair_head->weights();
  if (s.unfold_head) head = s.unfold_head->weights();
  all.insert(all.end(), head.begin(), head.end());
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
