// Accuracy and its standard error as a ratio over sequences (Cochran 1977, Sampling Techniques,
// eq. 6.13), without gradients. Time O(one forward pass over the batches).
#include "harness/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace attn {

namespace {

struct Tally {
  double right = 0, scored = 0;
};

// One tally a sequence, appended.
void count(const Tensor& logits, const Batch& batch, std::vector<Tally>& tallies) {
  const int64_t classes = logits.dim(-1);
  const int64_t labels =
      static_cast<int64_t>(batch.targets.size()) / batch.size;  // of one sequence
  for (int64_t b = 0; b < batch.size; ++b) {
    Tally& tally = tallies.emplace_back();
    for (int64_t i = b * labels; i < (b + 1) * labels; ++i) {
      const int32_t target = batch.targets[static_cast<size_t>(i)];
      if (target < 0) continue;
      const real* row = logits.data() + i * classes;
      tally.scored += 1;
      if (std::max_element(row, row + classes) - row == target) tally.right += 1;
    }
  }
}

}  // namespace

Score evaluate(const Encoder& model, const std::vector<Batch>& batches) {
  const NoGrad no_grad;
  std::vector<Tally> tallies;
  for (const Batch& batch : batches) count(model.forward(batch).value(), batch, tallies);
  Tally total;
  for (const Tally& tally : tallies) {
    total.right += tally.right;
    total.scored += tally.scored;
  }
  if (total.scored == 0) return {};
  const double accuracy = total.right / total.scored;
  const double n = static_cast<double>(tallies.size());
  double squares = 0;
  for (const Tally& tally : tallies) squares += std::pow(tally.right - accuracy * tally.scored, 2);
  const double error = n > 1 ? std::sqrt(squares * n / (n - 1)) / total.scored : 0;
  return {accuracy, error};
}

}  // namespace attn
