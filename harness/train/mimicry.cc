// The passes and steps of the fit; see mimicry.h. Memory: queries and keys of all layers for one
// batch, two moments, and the tape of the losses.
#include "harness/train/mimicry.h"

#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "harness/train/batches.h"
#include "harness/train/optimizer.h"
#include "harness/train/train.h"
#include "variants/api/mimicry.h"

namespace attn {

int64_t mimicry_steps(const Params& training) {
  const auto found = training.values().find(kMimicry);
  return found == training.values().end() ? 0 : std::get<int64_t>(found->second);
}

std::optional<std::string> why_no_mimicry(const VariantInfo& variant, const Params& training) {
  const int64_t steps = mimicry_steps(training);
  if (steps == 0 || variant.traits.mimicry) return std::nullopt;
  return fmt::format(
      "{} has no loss that imitates softmax, so mimicry={} does not apply (trait mimicry)",
      variant.name, steps);
}

AttentionWatch MimicryFit::watch() {
  return [this](const AttentionPass& pass) {
    if (watches_ && as_mimicking(*pass.attention))
      seen_.push_back({pass.attention, pass.q, pass.k, pass.mask});
  };
}

// Queries and keys of a pass in evaluation: without dropout.
void MimicryFit::see(const Learner& model, const Batch& batch) {
  const NoGrad no_grad;
  seen_.clear();
  watches_ = true;
  model.loss(batch, nullptr);
  watches_ = false;
  ATTN_CHECK(!seen_.empty(), "no attention of the model has a loss that imitates softmax");
}

std::vector<Var> MimicryFit::weights() const {
  std::vector<const Attention*> attentions;
  std::vector<Var> fitted;
  for (const Seen& seen : seen_) {
    if (std::find(attentions.begin(), attentions.end(), seen.attention) != attentions.end())
      continue;
    attentions.push_back(seen.attention);
    for (const Weight& weight : seen.attention->weights())
      if (weight.learned || weight.moved) fitted.push_back(weight.value);
  }
  return fitted;
}

Var MimicryFit::loss() const {
  Var sum;
  for (const Seen& seen : seen_) {
    const Var own = as_mimicking(*seen.attention)->mimicry_loss(seen.q, seen.k, seen.mask);
    sum = sum.defined() ? add(sum, own) : own;
  }
  return sum;
}

bool MimicryFit::run(const Learner& model, const Task& task, const Params& training,
                     uint64_t seed) {
  const int64_t steps = mimicry_steps(training);
  TrainingStream stream(task, seed, training.integer("batch"));
  std::optional<AdamW> optimizer;
  losses_.clear();
  for (int64_t step = 0; step < steps; ++step) {
    see(model, stream.next());
    if (!optimizer) optimizer.emplace(weights(), AdamWConfig{.clip = training.number("clip")});
    const Var sum = loss();
    losses_.push_back(static_cast<double>(sum.value()[0]) / static_cast<double>(seen_.size()));
    if (!std::isfinite(losses_.back())) return false;
    sum.backward();
    const double rate = learning_rate(step, steps, 0, training.number("learning_rate"));
    if (!std::isfinite(optimizer->step(rate))) return false;
  }
  seen_.clear();
  return true;
}

}  // namespace attn
