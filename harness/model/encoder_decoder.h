// The Transformer that answers with a sequence: an encoder of the source, and a decoder that gives
// one token after the other until it chooses to end. Vaswani et al. 2017, arXiv:1706.03762; norms
// as in encoder.h.
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
  // Of both halves: layer, layers, positions, seed; of the source: vocab, channels, length; and
  // `classes`, the kinds of output tokens. The rest is not looked at.
  ModelConfig model;
  int64_t outputs = 1;  // longest output, without its end
  // Stands where layer.variant cannot: in the decoder what is not causal, as cross-attention what
  // does not answer each query by itself (Traits::rowwise).
  const VariantInfo* exact = nullptr;
};

class EncoderDecoder {
 public:
  explicit EncoderDecoder(const EncoderDecoderConfig& config);
  ~EncoderDecoder();

  struct Memory {
    Var rows;                      // [size, length, width]
    std::vector<int64_t> lengths;  // of the sources; empty: all full
  };
  // `dropout` null: evaluation.
  Memory encode(const Batch& batch, Rng* dropout = nullptr) const;
  // inputs [size, steps], the start token first -> logits [size, steps, classes + 1] of the token
  // after each, the last class being the end. A position sees the inputs up to its own.
  Var decode(const Memory& memory, const std::vector<int32_t>& inputs,
             Rng* dropout = nullptr) const;

  // Teacher forcing: of batch.targets [size, width], filled up with -1, the decoder's inputs
  // (start, then the targets) and what it should answer (the targets, the end, then -1): [size,
  // width + 1].
  struct Forced {
    std::vector<int32_t> inputs, labels;
  };
  Forced forced(const Batch& batch) const;
  int32_t end_token() const;    // classes
  int32_t start_token() const;  // classes + 1

  // decode(), one position after the other from a state; where has_states(). Not recorded.
  struct States {
    std::vector<DecoderLayer::State> layers;
    int64_t position = 0;
  };
  bool has_states() const;
  States start(const Memory& memory, int64_t outputs) const;  // room for so many tokens and the end
  // tokens [size] of the position -> logits [size, classes + 1]
  Tensor step(const Memory& memory, States& states, const std::vector<int32_t>& tokens) const;
  // Of one source of `length` positions and an output of `outputs` tokens and its end: states of
  // self-attention, keys and values of cross-attention. nullopt: no states.
  std::optional<int64_t> state_bytes(int64_t length, int64_t outputs) const;

  std::vector<std::string> places() const;  // see Learner::places
  std::vector<Weight> weights() const;      // named "encoder." and "decoder."
  const EncoderDecoderConfig& config() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
