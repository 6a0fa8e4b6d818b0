// Encoder and decoder, teacher forcing and step-by-step decoding; see encoder_decoder.h. The cost
// is that of the layers. A step has the cost of one position, with cross-attention over the source.
#include "harness/model/encoder_decoder.h"

#include <algorithm>
#include <utility>

#include "core/ops/ops.h"
#include "harness/model/embedding.h"
#include "harness/model/handed_on.h"
#include "harness/model/weights.h"

namespace attn {

namespace {

const EncoderDecoderConfig& checked_config(const EncoderDecoderConfig& config) {
  const ModelConfig& m = config.model;
  ATTN_CHECK(m.layer.variant, "a layer needs an attention variant");
  ATTN_CHECK(m.layers >= 1 && m.length >= 1 && m.classes >= 1 && config.outputs >= 1,
             "a model needs layers, length, classes and outputs of at least 1, got {}, {}, {} and "
             "{}",
             m.layers, m.length, m.classes, config.outputs);
  ATTN_CHECK(m.layer.heads >= 1 && m.layer.width % m.layer.heads == 0,
             "width {} is not a multiple of heads {}", m.layer.width, m.layer.heads);
  ATTN_CHECK(!m.layer.causal, "the encoder of an output sequence sees its whole source");
  ATTN_CHECK(!m.pairs, "an output sequence has one source");
  return config;
}

// The attention of one place: the variant, or `exact`.
struct Place {
  LayerConfig layer;
  AttentionShape shape;
  bool own = false;  // the variant stands here
};

Place place(const EncoderDecoderConfig& config, bool cross) {
  const LayerConfig& given = config.model.layer;
  const int64_t steps = config.outputs + 1;
  Place made{given, {1, given.heads, steps, steps, given.width / given.heads, !cross}, false};
  if (cross) made.shape.kv_len = config.model.length;
  const VariantInfo& variant = *given.variant;
  const Params params(variant.name, variant.params, given.variant_params);
  made.own = !variant.why_not(made.shape, params) &&
             (!cross || (variant.traits.cross && variant.traits.rowwise));
  if (!made.own) {
    ATTN_CHECK(config.exact, "{} cannot be the decoder's {}-attention, and nothing else is given",
               variant.name, cross ? "cross" : "self");
    made.layer.variant = config.exact;
    made.layer.variant_params = {};
  }
  made.layer.causal = !cross;
  made.layer.max_len = made.shape.kv_len;
  made.layer.rotary = !cross && config.model.positions == Positions::rotary;
  return made;
}

ModelConfig source_config(ModelConfig model) {
  model.per_token = true;  // no cls vector
  return model;
}

ModelConfig output_config(const EncoderDecoderConfig& config) {
  ModelConfig model = source_config(config.model);
  model.vocab = model.classes + 2;
  model.length = config.outputs + 1;
  model.seed = rng(config.model.seed, "decoder").bits();
  return model;
}

}  // namespace

struct EncoderDecoder::State {
  explicit State(const EncoderDecoderConfig& given)
      : config(given),
        self(place(given, false)),
        cross(place(given, true)),
        source_distances(distance_bias(given.model, given.model.layer.causal)),
        output_distances(distance_bias(output_config(given), true)),
        source(source_config(given.model)),
        output(output_config(given)) {
    const ModelConfig& m = config.model;
    self.layer.distances = output_distances;
    const uint64_t decoder_seed = output_config(config).seed;
    for (int64_t i = 0; i < m.layers; ++i) {
      LayerConfig layer = m.layer;
      layer.max_len = m.length;
      layer.rotary = m.positions == Positions::rotary;
      layer.distances = source_distances;
      layer.seed = rng(m.seed, "layer", static_cast<uint64_t>(i)).bits();
      encoder.push_back(std::make_unique<Layer>(layer_config_at(layer, i)));
      self.layer.seed = cross.layer.seed =
          rng(decoder_seed, "layer", static_cast<uint64_t>(i)).bits();
      decoder.push_back(std::make_unique<DecoderLayer>(layer_config_at(self.layer, i),
                                                       layer_config_at(cross.layer, i)));
    }
    if (m.layer.norm == Norm::pre)
      for (std::vector<Weight>* norm : {&encoder_norm, &decoder_norm})
        *norm = {constant_weight("norm.gain", {m.layer.width}, 1),
                 constant_weight("norm.bias", {m.layer.width}, 0)};
    head = glorot_weight("head", m.layer.width, m.classes + 1, decoder_seed);
    head_bias = constant_weight("head_bias", {m.classes + 1}, 0);
  }

  Var dropped(const Var& x, Rng* dropout) const {
    const double p = config.model.layer.dropout;
    return dropout && p > 0 ? attn::dropout(x, p, *dropout) : x;
  }
  static Var normed(const Var& x, const std::vector<Weight>& norm) {
    return norm.empty() ? x : layer_norm(x, norm[0].value, norm[1].value);
  }
  // From position `first` on: [size, steps, width].
  Var embedded(int64_t size, const std::vector<int32_t>& tokens, int64_t first) const {
    const Batch batch{.size = size, .length = std::ssize(tokens) / size, .tokens = tokens};
    return output.forward(batch, first);
  }
  Var logits(const Var& x) const {
    return linear(normed(x, decoder_norm), head.value, head_bias.value);
  }

  EncoderDecoderConfig config;
  Place self, cross;
  // Null: positions are no bias.
  std::shared_ptr<const DistanceBias> source_distances, output_distances;
  InputEmbedding source, output;
  std::vector<std::unique_ptr<Layer>> encoder;
  std::vector<std::unique_ptr<DecoderLayer>> decoder;
  std::vector<Weight> encoder_norm, decoder_norm;  // gain and bias [width]; pre-norm only
  Weight head, head_bias;                          // [width, classes + 1], [classes + 1]
};

EncoderDecoder::EncoderDecoder(const EncoderDecoderConfig& config)
    : state_(std::make_unique<State>(checked_config(config))) {}
EncoderDecoder::~EncoderDecoder() = default;

EncoderDecoder::Memory EncoderDecoder::encode(const Batch& batch, Rng* dropout) const {
  const State& s = *state_;
  ATTN_CHECK(batch.documents == 1 && !batch.edges,
             "an output sequence is made of one source, without edges");
  ATTN_CHECK(batch.lengths.empty() || std::ssize(batch.lengths) == batch.size,
             "a batch of {} sequences has {} lengths", batch.size, batch.lengths.size());
  Var x = s.dropped(s.source.forward(batch), dropout);
  HandedOn handed;
  for (const auto& layer : s.encoder) x = layer->forward(x, batch.lengths, dropout, {}, &handed);
  return {State::normed(x, s.encoder_norm), batch.lengths};
}

Var EncoderDecoder::decode(const Memory& memory, const std::vector<int32_t>& inputs,
                           Rng* dropout) const {
  const State& s = *state_;
  Var x = s.dropped(s.embedded(memory.rows.dim(0), inputs, 0), dropout);
  HandedOn handed;
  for (const auto& layer : s.decoder)
    x = layer->forward(x, memory.rows, memory.lengths, dropout, &handed);
  return s.logits(x);
}

EncoderDecoder::Forced EncoderDecoder::forced(const Batch& batch) const {
  const int64_t width = std::ssize(batch.targets) / batch.size;
  ATTN_CHECK(width >= 1 && width <= state_->config.outputs,
             "outputs of up to {} tokens for a model of {}", width, state_->config.outputs);
  const auto places = static_cast<size_t>(batch.size * (width + 1));
  Forced made{std::vector<int32_t>(places, end_token()), std::vector<int32_t>(places, -1)};
  for (int64_t b = 0; b < batch.size; ++b) {
    const auto from = batch.targets.begin() + b * width;
    const auto end = std::find(from, from + width, -1);
    const auto at = b * (width + 1);
    made.inputs[static_cast<size_t>(at)] = start_token();
    std::copy(from, end, made.inputs.begin() + at + 1);
    *std::copy(from, end, made.labels.begin() + at) = end_token();
  }
  return made;
}

int32_t EncoderDecoder::end_token() const {
  return static_cast<int32_t>(state_->config.model.classes);
}
int32_t EncoderDecoder::start_token() const { return end_token() + 1; }

bool EncoderDecoder::has_states() const {
  const Place& self = state_->self;
  const VariantInfo& variant = *self.layer.variant;
  return !variant.why_no_decoder(self.shape,
                                 Params(variant.name, variant.params, self.layer.variant_params));
}

EncoderDecoder::States EncoderDecoder::start(const Memory& memory, int64_t outputs) const {
  const NoGrad no_grad;
  States states;
  for (const auto& layer : state_->decoder)
    states.layers.push_back(layer->start(memory.rows, outputs + 1));
  return states;
}

Tensor EncoderDecoder::step(const Memory& memory, States& states,
                            const std::vector<int32_t>& tokens) const {
  const NoGrad no_grad;
  const State& s = *state_;
  Var x = s.embedded(memory.rows.dim(0), tokens, states.position++);
  HandedOn handed;  // of this position
  for (size_t i = 0; i < s.decoder.size(); ++i)
    x = s.decoder[i]->step(x, states.layers[i], memory.lengths, &handed);
  return s.logits(x).value().reshaped({x.dim(0), s.config.model.classes + 1});
}

std::optional<int64_t> EncoderDecoder::state_bytes(int64_t length, int64_t outputs) const {
  if (!has_states()) return std::nullopt;
  const State& s = *state_;
  const LayerConfig& layer_of = s.config.model.layer;
  const int64_t kept = layer_of.kv_heads > 0 ? layer_of.kv_heads : layer_of.heads;
  const int64_t width = layer_of.width / layer_of.heads * kept;  // of the memory's keys
  AttentionShape steps = s.self.shape;
  steps.q_len = steps.kv_len = outputs + 1;
  double bytes = 0;
  for (size_t i = 0; i < s.decoder.size(); ++i) {
    const LayerConfig own = layer_config_at(s.self.layer, static_cast<int64_t>(i));
    bytes += s.decoder[i]->self_attention().state_bytes(steps, own.kv_heads) +
             static_cast<double>(s.decoder[i]->feed_forward().state_bytes(1)) +
             static_cast<double>(2 * length * width) * sizeof(real);
  }
  return static_cast<int64_t>(bytes);
}

std::vector<std::string> EncoderDecoder::places() const {
  std::vector<std::string> all = {"encoder"};
  if (state_->self.own) all.push_back("decoder");
  if (state_->cross.own) all.push_back("cross");
  return all;
}

std::vector<Weight> EncoderDecoder::weights() const {
  const State& s = *state_;
  std::vector<Weight> all;
  const auto append = [&](const std::string& prefix, const std::vector<Weight>& weights) {
    for (const Weight& weight : weights)
      all.push_back({prefix + weight.name, weight.value, weight.learned, weight.moved});
  };
  append("encoder.input.", s.source.weights());
  for (size_t i = 0; i < s.encoder.size(); ++i)
    append(fmt::format("encoder.layers.{}.", i), s.encoder[i]->weights());
  append("encoder.", s.encoder_norm);
  if (s.source_distances) append("encoder.", s.source_distances->weights());
  append("decoder.input.", s.output.weights());
  for (size_t i = 0; i < s.decoder.size(); ++i)
    append(fmt::format("decoder.layers.{}.", i), s.decoder[i]->weights());
  append("decoder.", s.decoder_norm);
  if (s.output_distances) append("decoder.", s.output_distances->weights());
  append("decoder.", {s.head, s.head_bias});
  return all;
}

const EncoderDecoderConfig& EncoderDecoder::config() const { return state_->config; }

}  // namespace attn
