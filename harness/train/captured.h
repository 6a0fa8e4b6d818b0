// What the attention layers of a model read: queries, keys and values on test sequences, from the
// initial weights or from those of a training with exact attention.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/train/train.h"

namespace attn {

struct CapturedLayer {
  Tensor q, k, v;                // [sequences, heads, length, head_dim], rotary positions applied
  std::vector<int64_t> lengths;  // of the sequences; empty: none is padded
};

struct Captured {
  std::vector<CapturedLayer> layers;   // in the order of the model
  std::optional<double> test, chance;  // the model's score, in the task's metric; nullopt: initial
};

// The attention of the model, without the number of sequences.
struct CapturedShape {
  int64_t length = 0, heads = 0, head_dim = 0;
  bool causal = false;
};
CapturedShape captured_shape(const TaskShape& task, const Params& training);

// The reason why nothing can be captured: the answers are output sequences, examples have edges, or
// exact attention cannot be trained on the task; nullopt: it can.
std::optional<std::string> why_not_captured(const std::string& name, const Task& task,
                                            const VariantInfo& exact, const Params& training);

// Of the first `examples` test examples; a pair of documents is two sequences. The variant of
// `request` is not used: the model has `request.exact`. Error where the training diverges.
Captured captured(const TrainRequest& request, bool trained, int64_t examples);

}  // namespace attn
