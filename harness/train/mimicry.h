// The fit before a training: the attention's own weights, such as feature maps, are moved so that
// its weights imitate those of softmax attention, each layer and head on the queries and keys that
// the untrained model makes of the task's batches. Zhang et al. 2024, arXiv:2402.04347, section 4.
// A step costs a forward pass of the model and the losses of its layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/train/learner.h"

namespace attn {

// The setting `mimicry`; 0 where it is not named, as in rows without a fit.
int64_t mimicry_steps(const Params& training);

// Why `variant` cannot be fitted although the setting `mimicry` asks for it; nullopt: it can, or
// the setting is 0.
std::optional<std::string> why_no_mimicry(const VariantInfo& variant, const Params& training);

class MimicryFit {
 public:
  MimicryFit() = default;
  MimicryFit(const MimicryFit&) = delete;  // its watch refers to it
  MimicryFit& operator=(const MimicryFit&) = delete;
  // For LearnerSpec::watch of the model that is fitted, which must not outlive this object.
  AttentionWatch watch();
  // `mimicry` steps of AdamW with the training's batch, learning rate (falling to zero over the
  // steps, without warm-up) and clip, without weight decay, on the first batches of the training.
  // Other weights stay. False: a loss or a gradient was not finite.
  bool run(const Learner& model, const Task& task, const Params& training, uint64_t seed);
  // The mean loss of the model's attentions before each step.
  const std::vector<double>& losses() const { return losses_; }

 private:
  struct Seen {
    const Attention* attention;
    Tensor q, k;  // [batch, heads, len, head_dim]
    Mask mask;
  };
  void see(const Learner& model, const Batch& batch);
  std::vector<Var> weights() const;
  Var loss() const;

  bool watches_ = false;
  std::vector<Seen> seen_;  // of one pass, those with a mimicry loss
  std::vector<double> losses_;
};

}  // namespace attn
