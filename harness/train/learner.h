// What the training loop needs of a model on a task: a loss, a score, its weights, and what
// decoding with it costs. One kind for labels (encoder), one for output sequences (encoder and
// decoder).
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

// Greedy decoding of some test sequences, once from decode states, once recomputing every prefix.
struct Decoding {
  int64_t sequences = 0, tokens = 0;  // tokens decoded, ends included, by either way
  double state_s = 0, recompute_s = 0;
  double same = 0;  // share of sequences whose tokens are the same both ways
};

class Learner {
 public:
  virtual ~Learner() = default;
  // Mean over what is scored; one element. `dropout` null: evaluation.
  virtual Var loss(const Batch& batch, Rng* dropout) const = 0;
  virtual Score score(const std::vector<Batch>& batches) const = 0;
  virtual std::vector<Weight> weights() const = 0;
  // What decoding keeps of one sequence as long as `shape` (its length and outputs) allows, over
  // all layers; nullopt: the model does not decode (not causal, or the variant has no decode
  // state).
  virtual std::optional<int64_t> state_bytes(const TaskShape& shape) const = 0;
  // Which of "encoder", "decoder" and "cross" use the variant; the others use exact attention.
  virtual std::vector<std::string> places() const { return {"encoder"}; }
  // nullopt: no output sequences, or the variant's decoder has no states.
  virtual std::optional<Decoding> decoding(const std::vector<Batch>&) const { return {}; }
};

struct LearnerSpec {
  TaskShape shape;  // its `length` (and `outputs`) the longest that will come
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> variant_params;
  Params training;
  uint64_t seed = 0;
  const VariantInfo* exact = nullptr;  // `full`: where output sequences cannot use the variant
};

std::unique_ptr<Learner> make_learner(const LearnerSpec& spec);
// The kind for TaskShape::outputs, in sequence_learner.cc.
std::unique_ptr<Learner> make_sequence_learner(const LearnerSpec& spec);

}  // namespace attn
