// The score of a model on fixed batches, with its standard error.
#pragma once

#include <vector>

#include "harness/model/encoder.h"

namespace attn {

struct Score {
  double accuracy = 0;  // right over scored labels: one a sequence, or every scored position
  double standard_error =
      0;  // sequences are the sample: labels of one sequence are not independent
};

Score evaluate(const Encoder& model, const std::vector<Batch>& batches);

}  // namespace attn
