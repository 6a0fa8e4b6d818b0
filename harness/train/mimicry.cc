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

bool mimicry_goes_on(const Params& training) {
  const auto found = training.values().find(kMimicryUntil);
  return found != training.values().end() && std::get<std::string>(found->second) == "end";
}

int64_t mimicry_steps(const Params& training) {
  const auto found = training.values().find(kMimicry);
  return found == training.values().end() ? 0 : std::get<int64_t>(found->second);
}

namespace {

// Of a stack, any of its layers. Asks a small attention.
bool can_go_on(const VariantInfo& variant, const std::map<std::string, ParamValue>& given) {
  if (!variant.traits.mimicry) return false;
  if (variant.is_stack())
    return std::any_of(variant.layers.begin(), variant.layers.end(), [](const LayerVariant& layer) {
      return can_go_on(*layer.variant, layer.params);
    });
  const auto small = variant.build(
      {.heads = 1, .head_dim = 8, .max_len = 8, .causal = true, .seed = 1, .params = {}}, given);
  const Mimicking* const found = as_mimicking(*small);
  return found && found->can_go_on();
}

}  // namespace

std::optional<std::string> why_no_mimicry(const VariantInfo& variant,
                                          const std::map<std::string, ParamValue>& variant_params,
                                          const Params& training) {
  const int64_t steps = mimicry_steps(training);
  if (steps == 0) return std::nullopt;
  if (mimicry_goes_on(training) && !can_go_on(variant, variant_params))
    return fmt::format(
        "{} has no weights that could go on to imitate softmax while the model is trained, so "
        "{}=end does not apply",
        variant.name, kMimicryUntil);
  bool is_fit = false, is_unfit = false;
  const auto look = [&](const VariantInfo& own, const std::map<std::string, ParamValue>& given) {
    const bool can = own.can_mimic(Params(own.name, own.params, given));
    is_fit = is_fit || can;
    is_unfit = is_unfit || (own.traits.mimicry && !can);
  };
  if (!variant.is_stack()) look(variant, variant_params);
  for (const LayerVariant& layer : variant.layers) look(*layer.variant, layer.params);
  if (is_fit && !is_unfit) return std::nullopt;
  return fmt::format(
      "{}{} has no loss that imitates softmax, so mimicry={} does not apply (trait mimicry)",
      variant.name, is_unfit ? " with its parameters" : "", steps);
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

Var MimicryFit::loss(bool of_chosen) const {
  Var sum;
  for (const Seen& seen : seen_) {
    const Mimicking& by = *as_mimicking(*seen.attention);
    if (of_chosen && !by.can_go_on()) continue;
    const Var own = of_chosen ? by.chosen_mimicry_loss(seen.q, seen.k, seen.mask)
                              : by.mimicry_loss(seen.q, seen.k, seen.mask);
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
    const Var sum = loss(false);
    losses_.push_back(static_cast<double>(sum.value()[0]) / static_cast<double>(seen_.size()));
    if (!std::isfinite(losses_.back())) return false;
    sum.backward();
    const double rate = learning_rate(step, steps, 0, training.number("learning_rate"));
    if (!std::isfinite(optimizer->step(rate))) return false;
  }
  seen_.clear();
  return true;
}

void MimicryFit::listen(bool on) {
  watches_ = on;
  if (on) seen_.clear();
}

bool MimicryFit::go_on(double learning_rate, double clip) {
  if (!later_) {
    std::vector<Var> moved;
    for (const Seen& seen : seen_)
      for (const Weight& weight : seen.attention->weights())
        if (weight.moved) moved.push_back(weight.value);
    later_.emplace(moved, AdamWConfig{.clip = clip});
  }
  const Var sum = loss(true);
  seen_.clear();
  if (!std::isfinite(static_cast<double>(sum.value()[0]))) return false;
  sum.backward();
  return std::isfinite(later_->step(learning_rate));
}

}  // namespace attn
