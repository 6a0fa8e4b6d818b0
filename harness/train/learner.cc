// The learner for labels and for real answers: an encoder with cross-entropy or squared error; see
// learner.h. Costs one forward pass, and in training one backward pass.
#include "harness/train/learner.h"

#include <algorithm>
#include <utility>

#include "core/ops/ops.h"
#include "harness/model/decoded_rows.h"
#include "harness/train/settings.h"
#include "harness/train/slices.h"

namespace attn {

namespace {

class LabelLearner final : public Learner {
 public:
  explicit LabelLearner(const LearnerSpec& spec)
      : real_(spec.shape.real),
        scoring_(spec.shape.bits ? Scoring::bits : Scoring::accuracy),
        cache_(spec.cache),
        prompt_(spec.prompt),
        model_(model_config(spec)) {}

  Var loss(const Batch& batch, Rng* dropout) const override {
    if (real_) return squared_error(batch, dropout);
    const Encoder::Scored scored = model_.scored(batch, dropout);
    if (scored.entries.size() == batch.targets.size())
      return cross_entropy(scored.logits, batch.targets);
    std::vector<int32_t> targets;
    for (const int32_t entry : scored.entries)
      targets.push_back(batch.targets[static_cast<size_t>(entry)]);
    return cross_entropy(scored.logits, targets);
  }

  Score score(const std::vector<Batch>& batches) const override {
    const NoGrad no_grad;
    const AnsweredBySteps answered(cache_, prompt_);
    if (!real_) return evaluate(model_, batches, scoring_);
    std::vector<double> errors;
    std::vector<Answer> told;
    for (const Batch& batch : batches) {
      const Tensor answers = model_.forward(batch).value();  // [size, 1]
      for (int64_t i = 0; i < batch.size; ++i) {
        const double off = static_cast<double>(answers[i]) -
                           static_cast<double>(batch.wanted[static_cast<size_t>(i)]);
        told.push_back({.sequence = std::ssize(errors), .score = off * off});
        errors.push_back(off * off);
      }
    }
    Score score = mean_score(errors);
    score.by_slice = slice_bins(told, batches);
    return score;
  }

  std::vector<Weight> weights() const override { return model_.weights(); }
  std::optional<int64_t> state_bytes(const TaskShape& shape) const override {
    return model_.state_bytes(shape.length, cache_.value_or(CacheType::float32), prompt_);
  }

 private:
  Var squared_error(const Batch& batch, Rng* dropout) const {
    const Tensor wanted({batch.size, 1});
    std::copy(batch.wanted.begin(), batch.wanted.end(), wanted.data());
    return mean_squared_error(model_.forward(batch, dropout), wanted);
  }

  bool real_;
  Scoring scoring_;
  std::optional<CacheType> cache_;
  int64_t prompt_;
  Encoder model_;
};

}  // namespace

std::unique_ptr<Learner> make_learner(const LearnerSpec& spec) {
  if (spec.shape.outputs > 0) return make_sequence_learner(spec);
  return std::make_unique<LabelLearner>(spec);
}

}  // namespace attn
