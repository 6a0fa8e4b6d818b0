// The fit before a training: the attention's own weights, such as feature maps, are moved so that
// its weights imitate those of softmax attention, each layer and head on the queries and keys that
// the untrained model makes of the task's batches. Zhang et al. 2024, arXiv:2402.04347, section 4.
// A step costs a forward pass of the model and the losses of its layers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/train/learner.h"
#include "harness/train/optimizer.h"

namespace attn {

// Whether the setting `mimicry_until` says that the fit goes on while the model is trained.
bool mimicry_goes_on(const Params& training);

// The setting `mimicry`; 0 where it is not named, as in rows without a fit.
int64_t mimicry_steps(const Params& training);

// Why `variant` with these parameters cannot be fitted although the setting `mimicry` asks for it;
// nullopt: it can, or the setting is 0.
std::optional<std::string> why_no_mimicry(const VariantInfo& variant,
                                          const std::map<std::string, ParamValue>& variant_params,
                                          const Params& training);

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
  // The second stage, DeepSeek-V3.2 2025, arXiv:2512.02556, eq. 4: whether passes from here on are
  // those of a step of the training, and a step of AdamW by the losses over the chosen keys of the
  // passes that were heard. False: a loss or a gradient was not finite.
  void listen(bool on);
  bool go_on(double learning_rate, double clip);

  // The mean loss of the model's attentions before each step of run().
  const std::vector<double>& losses() const { return losses_; }

 private:
  struct Seen {
    const Attention* attention;
    Tensor q, k;  // [batch, heads, len, head_dim]
    Mask mask;
  };
  void see(const Learner& model, const Batch& batch);
  std::vector<Var> weights() const;
  Var loss(bool of_chosen) const;

  bool watches_ = false;
  std::vector<Seen> seen_;  // of one pass, those with a mimicry loss
  std::vector<double> losses_;
  std::optional<AdamW> later_;  // of the second stage
};

}  // namespace attn
