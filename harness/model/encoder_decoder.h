// The Transformer for output sequences: an encoder for the source, and a decoder that predicts one
// token after the other and then an end token. Vaswani et al. 2017, arXiv:1706.03762; norms as in
// encoder.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/decoder_layer.h"
#include "harness/model/encoder.h"

namespace attn {

struct EncoderDecoderConfig {
  // layer, layers, positions and seed are of encoder and decoder; vocab, channels and length are of
  // the source; `classes` is the number of output tokens. The other fields are not used.
  ModelConfig model;
  int64_t outputs = 1;  // of the longest output, without the end token
  // Replaces layer.variant where a decoder cannot use the variant: as self-attention if the variant
  // cannot be causal, as cross-attention if it lacks Traits::cross or Traits::rowwise.
  const VariantInfo* exact = nullptr;
};

class EncoderDecoder {
 public:
  explicit EncoderDecoder(const EncoderDecoderConfig& config);
  ~EncoderDecoder();

  struct Memory {
    Var rows;                      // [size, length, width]
    std::vector<int64_t> lengths;  // of the sources; empty: all are full
  };
  // Null `dropout`: evaluation.
  Memory encode(const Batch& batch, Rng* dropout = nullptr) const;
  // inputs [size, steps], beginning with the start token -> logits [size, steps, classes + 1] of
  // the next token; the last class is the end token. Causal.
  Var decode(const Memory& memory, const std::vector<int32_t>& inputs,
             Rng* dropout = nullptr) const;

  // Teacher forcing for batch.targets [size, width], padded with -1: the inputs of the decoder (the
  // start token, then the targets) and its labels (the targets, the end token, then -1), both
  // [size, width + 1].
  struct Forced {
    std::vector<int32_t> inputs, labels;
  };
  Forced forced(const Batch& batch) const;
  int32_t end_token() const;    // classes
  int32_t start_token() const;  // classes + 1

  // Step-by-step decode() from states, if has_states(). Records no gradients.
  struct States {
    std::vector<DecoderLayer::State> layers;
    int64_t position = 0;
  };
  bool has_states() const;
  // States for at most `outputs` tokens and the end token.
  States start(const Memory& memory, int64_t outputs) const;
  // tokens [size] of the current position -> logits [size, classes + 1]
  Tensor step(const Memory& memory, States& states, const std::vector<int32_t>& tokens) const;
  // Bytes for one source of `length` positions and one output of `outputs` tokens and the end
  // token: states of self-attention, keys and values of cross-attention. nullopt without states.
  std::optional<int64_t> state_bytes(int64_t length, int64_t outputs) const;

  std::vector<std::string> places() const;  // see Learner::places
  std::vector<Weight> weights() const;      // names begin with "encoder." or "decoder."
  const EncoderDecoderConfig& config() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
