// Which test examples were answered right, as a text short enough for a row: with it, two trainings
// that were scored on the same examples are compared example by example. Costs O(examples).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/model/encoder.h"

namespace attn {

// The score of an example is the share of its labels that are right, in levels of 1 / (levels - 1).
struct ExampleScores {
  int64_t count = 0;
  // 2: each score is 0 or 1, and a digit holds four examples, the first in its highest bit.
  // 16: an example has several labels, and a digit is the score of one, rounded to fifteenths.
  int64_t levels = 2;
  std::string digest;  // 16 hexadecimal digits, of the inputs and labels of all the examples
  std::string digits;  // hexadecimal
};

// `each`: a score in [0, 1] for each example of `batches`, in their order.
ExampleScores example_scores(const std::vector<double>& each, const std::vector<Batch>& batches);

}  // namespace attn
