// The interface between the training loop and a model on a task: loss, score, weights, and the cost
// of decoding. One implementation for labels (an encoder), one for output sequences (an encoder and
// a decoder).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/encoder.h"
#include "harness/train/evaluate.h"
#include "tasks/api/task.h"

namespace attn {

// Timing of greedy decoding of some test sequences, from decode states and by recomputed prefixes.
struct Decoding {
  int64_t sequences = 0, tokens = 0;  // tokens decoded by either way, end tokens included
  double state_s = 0, recompute_s = 0;
  double same = 0;  // share of sequences with the same tokens from both ways
};

class Learner {
 public:
  virtual ~Learner() = default;
  // The mean loss over all labels of the batch, one element. Null `dropout`: evaluation.
  virtual Var loss(const Batch& batch, Rng* dropout) const = 0;
  virtual Score score(const std::vector<Batch>& batches) const = 0;
  virtual std::vector<Weight> weights() const = 0;
  // Bytes of the decode states of all layers for one sequence of the longest length and outputs of
  // `shape`. nullopt if the model cannot decode: it is not causal, or the variant has no decode
  // state.
  virtual std::optional<int64_t> state_bytes(const TaskShape& shape) const = 0;
  // Those of "encoder", "decoder" and "cross" that use the variant; the others use exact attention.
  virtual std::vector<std::string> places() const { return {"encoder"}; }
  // nullopt without output sequences or without decode states.
  virtual std::optional<Decoding> decoding(const std::vector<Batch>&) const { return {}; }
};

struct LearnerSpec {
  TaskShape shape;  // with the longest `length` and `outputs` of all batches
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> variant_params;
  Params training;
  uint64_t seed = 0;
  const VariantInfo* exact = nullptr;  // exact attention; see EncoderDecoderConfig::exact
  AttentionWatch watch = {};           // of all attention blocks
  // Scores of labels are answered by steps from it; nullopt: see AnsweredBySteps.
  std::optional<CacheType> cache = {};
  int64_t prompt = 0;  // positions that are appended at once before these steps
};

std::unique_ptr<Learner> make_learner(const LearnerSpec& spec);
// The implementation for TaskShape::outputs, in sequence_learner.cc.
std::unique_ptr<Learner> make_sequence_learner(const LearnerSpec& spec);

}  // namespace attn
