// The score of a model on fixed batches, with its standard error, in all and by distance.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/model/encoder.h"

namespace attn {

// Labels whose distance (Example::distances) is in [from, to], the least and the greatest there.
struct DistanceBin {
  int64_t from = 0, to = 0, labels = 0;
  double accuracy = 0, standard_error = 0;
};

struct Score {
  // The task's metric: labels right over labels scored (one a sequence, or every scored position);
  // sequences right in every token; or the mean squared error.
  double value = 0;
  double standard_error =
      0;  // sequences are the sample: labels of one sequence are not independent
  // Nearest first: at most five, of about equally many labels; labels of one distance stay
  // together. Labels of unknown distance are in none.
  std::vector<DistanceBin> by_distance{};
  double token_accuracy = 0;  // of output sequences: share of their places (ends included) right
};

Score evaluate(const Encoder& model, const std::vector<Batch>& batches);

// Mean of one number a sequence, with its standard error.
Score mean_score(const std::vector<double>& each);

// One scored label, of which sequence (counted from 0) and how far it looks (-1: unknown).
struct Answer {
  int64_t sequence = 0;
  int32_t distance = -1;
  bool right = false;
};
// Share of right answers out of `sequences` sequences, in all and by distance.
Score score_of(std::vector<Answer> answers, int64_t sequences);

}  // namespace attn
