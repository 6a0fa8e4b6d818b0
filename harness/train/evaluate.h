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
  double accuracy = 0;  // right over scored labels: one a sequence, or every scored position
  double standard_error =
      0;  // sequences are the sample: labels of one sequence are not independent
  // Nearest first: at most five, of about equally many labels; labels of one distance stay
  // together. Labels of unknown distance are in none.
  std::vector<DistanceBin> by_distance{};
};

Score evaluate(const Encoder& model, const std::vector<Batch>& batches);

}  // namespace attn
