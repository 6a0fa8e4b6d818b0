// What `attnbench peer` times, made from a JSON request of scripts/peers and .npy files: one
// attention, a step of decoding, or the training step of one model.
#pragma once

#include <memory>
#include <string>

#include "core/tensor/tensor.h"
#include "harness/store/rows.h"

namespace attn::cli {

// One variant on given q, k, v and weights: forward alone, or forward and backward with all
// gradients.
class AttentionSide {
 public:
  explicit AttentionSide(const Json& request);
  ~AttentionSide();
  Json flops() const;  // by formula: of forward alone and of both
  void forward() const;
  void train() const;
  // Of both passes that are timed: forward.npy; out.npy, grad_q.npy, … of each input that the
  // variant reads, grad_gate_NAME.npy of each gate, and grad_NAME.npy of each learned weight.
  void write(const std::string& folder) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// A step of decoding over a cache, taken back and made again.
class CacheSide {
 public:
  explicit CacheSide(const Json& request);
  ~CacheSide();
  Json flops() const;
  void decode() const;
  void write(const std::string& folder) const;  // decode.npy

 private:
  class State;
  std::unique_ptr<State> state_;
};

// The encoder of training with its optimiser, on one batch of tokens again and again.
class ModelSide {
 public:
  explicit ModelSide(const Json& request);
  ~ModelSide();
  double step();                                // the loss
  void write(const std::string& folder) const;  // NAME.npy of each weight

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace attn::cli
