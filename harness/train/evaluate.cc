// Accuracy and its standard error as a ratio over sequences (Cochran 1977, Sampling Techniques,
// eq. 6.13), without gradients. Time O(one forward pass over the batches).
#include "harness/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

namespace attn {

namespace {

struct Tally {
  double right = 0, scored = 0;
};

struct Answer {
  int64_t sequence;
  int32_t distance;  // -1: unknown
  bool right;
};

void add_answers(const Tensor& logits, const Batch& batch, int64_t first_sequence,
                 std::vector<Answer>& answers) {
  const int64_t classes = logits.dim(-1);
  const int64_t labels =
      static_cast<int64_t>(batch.targets.size()) / batch.size;  // of one sequence
  for (int64_t i = 0; i < batch.size * labels; ++i) {
    const int32_t target = batch.targets[static_cast<size_t>(i)];
    if (target < 0) continue;
    const real* row = logits.data() + i * classes;
    answers.push_back({first_sequence + i / labels,
                       batch.distances.empty() ? -1 : batch.distances[static_cast<size_t>(i)],
                       std::max_element(row, row + classes) - row == target});
  }
}

// Of some answers out of `sequences` sequences; those without any of them count as empty.
Score score_of(const std::vector<Answer>& answers, int64_t sequences) {
  std::map<int64_t, Tally> tallies;
  Tally total;
  for (const Answer& answer : answers)
    for (Tally* tally : {&total, &tallies[answer.sequence]}) {
      tally->right += answer.right;
      tally->scored += 1;
    }
  if (total.scored == 0) return {};
  const double accuracy = total.right / total.scored, n = static_cast<double>(sequences);
  double squares = 0;
  for (const auto& [sequence, tally] : tallies)
    squares += std::pow(tally.right - accuracy * tally.scored, 2);
  return {accuracy, n > 1 ? std::sqrt(squares * n / (n - 1)) / total.scored : 0};
}

std::vector<DistanceBin> bins(std::vector<Answer> answers, int64_t sequences) {
  constexpr size_t kBins = 5;
  std::erase_if(answers, [](const Answer& answer) { return answer.distance < 0; });
  const auto nearer = [](const Answer& a, const Answer& b) { return a.distance < b.distance; };
  std::stable_sort(answers.begin(), answers.end(), nearer);
  std::vector<DistanceBin> result;
  std::vector<Answer> bin;
  for (size_t i = 0, closed = 0; i < answers.size(); ++i) {
    bin.push_back(answers[i]);
    const bool last = i + 1 == answers.size();
    if (!last && answers[i + 1].distance == answers[i].distance) continue;
    const size_t passed = (i + 1) * kBins / answers.size();  // fifths of all labels
    if (passed == closed) continue;
    closed = passed;
    const Score score = score_of(bin, sequences);
    result.push_back({bin.front().distance, bin.back().distance, std::ssize(bin), score.accuracy,
                      score.standard_error});
    bin.clear();
  }
  return result;
}

}  // namespace

Score evaluate(const Encoder& model, const std::vector<Batch>& batches) {
  const NoGrad no_grad;
  std::vector<Answer> answers;
  int64_t sequences = 0;
  for (const Batch& batch : batches) {
    add_answers(model.forward(batch).value(), batch, sequences, answers);
    sequences += batch.size;
  }
  Score score = score_of(answers, sequences);
  score.by_distance = bins(std::move(answers), sequences);
  return score;
}

}  // namespace attn
