// Mean scores of labels and their standard errors as a ratio over sequences (Cochran 1977, Sampling
// Techniques, eq. 6.13), without gradients. Time O(one forward pass over the batches).
#include "harness/train/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>

#include "harness/train/slices.h"

namespace attn {

namespace {

struct Tally {
  double sum = 0, scored = 0;
};

double is_right(const real* row, int64_t classes, int32_t label) {
  return std::max_element(row, row + classes) - row == label ? 1 : 0;
}

double bits_of(const real* row, int64_t classes, int32_t label) {
  const auto most = static_cast<double>(*std::max_element(row, row + classes));
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - most);
  return (most - static_cast<double>(row[label]) + std::log(sum)) / std::numbers::ln2;
}

void add_answers(const Encoder::Scored& scored, const Batch& batch, int64_t first_sequence,
                 Scoring scoring, std::vector<Answer>& answers) {
  const Tensor& logits = scored.logits.value();
  const int64_t classes = logits.dim(-1);
  const int64_t labels =
      static_cast<int64_t>(batch.targets.size()) / batch.size;  // of one sequence
  const real* row = logits.data();
  for (const int32_t entry : scored.entries) {
    const auto i = static_cast<size_t>(entry);
    answers.push_back({first_sequence + entry / labels,
                       batch.distances.empty() ? -1 : batch.distances[i],
                       scoring == Scoring::bits ? bits_of(row, classes, batch.targets[i])
                                                : is_right(row, classes, batch.targets[i]),
                       entry % labels});
    row += classes;
  }
}

// Of each sequence.
std::vector<double> means(const std::vector<Answer>& answers, int64_t sequences) {
  std::vector<Tally> tallies(static_cast<size_t>(sequences));
  for (const Answer& answer : answers) {
    Tally& tally = tallies[static_cast<size_t>(answer.sequence)];
    tally.sum += answer.score;
    tally.scored += 1;
  }
  std::vector<double> each;
  for (const Tally& tally : tallies)
    each.push_back(tally.scored > 0 ? tally.sum / tally.scored : 0);
  return each;
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
    const Score score = overall(bin, sequences);
    result.push_back({bin.front().distance, bin.back().distance, std::ssize(bin), score.value,
                      score.standard_error});
    bin.clear();
  }
  return result;
}

}  // namespace

Score overall(const std::vector<Answer>& answers, int64_t sequences) {
  std::map<int64_t, Tally> tallies;
  Tally total;
  for (const Answer& answer : answers)
    for (Tally* tally : {&total, &tallies[answer.sequence]}) {
      tally->sum += answer.score;
      tally->scored += 1;
    }
  if (total.scored == 0) return {};
  const double mean = total.sum / total.scored, n = static_cast<double>(sequences);
  double squares = 0;
  for (const auto& [sequence, tally] : tallies)
    squares += std::pow(tally.sum - mean * tally.scored, 2);
  return {mean, n > 1 ? std::sqrt(squares * n / (n - 1)) / total.scored : 0};
}

Score score_of(std::vector<Answer> answers, int64_t sequences) {
  Score score = overall(answers, sequences);
  score.each = means(answers, sequences);
  score.by_distance = bins(std::move(answers), sequences);
  return score;
}

Score mean_score(const std::vector<double>& each) {
  const double n = static_cast<double>(each.size());
  if (each.empty()) return {};
  double sum = 0, squares = 0;
  for (const double value : each) sum += value;
  for (const double value : each) squares += std::pow(value - sum / n, 2);
  return {sum / n, n > 1 ? std::sqrt(squares / (n - 1) / n) : 0};
}

Score evaluate(const Encoder& model, const std::vector<Batch>& batches, Scoring scoring) {
  const NoGrad no_grad;
  std::vector<Answer> answers;
  int64_t sequences = 0;
  for (const Batch& batch : batches) {
    add_answers(model.scored(batch), batch, sequences, scoring, answers);
    sequences += batch.size;
  }
  std::vector<SliceBin> slices = slice_bins(answers, batches);
  Score score = score_of(std::move(answers), sequences);
  score.by_slice = std::move(slices);
  if (scoring == Scoring::bits) score.each.clear();  // no shares, so that a row cannot hold them
  return score;
}

}  // namespace attn
