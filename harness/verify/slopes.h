// Gradients of a timed pass in mode train beside those of the declared reference, along one random
// direction through all inputs and weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/workload.h"
#include "variants/api/reference.h"

namespace attn {

struct ComparedSlopes {
  double error = 0, bound = 0;
  std::optional<std::string> fault;
};

// `seen` is the last pass of `pass`, `inputs` what it read, with the rows that are compared;
// `left_out` are positions of them where rounding chooses keys. A gradient is linear in the
// gradient of the output. So the gradients of the timed pass, less those of one more pass whose
// output's gradient is 0 at the compared rows, are those of these rows alone, and these rows alone
// are asked of the reference, twice.
ComparedSlopes compare_slopes(GradientPass& pass, const SeenPass& seen,
                              const ReferenceInputs& inputs, const std::vector<int64_t>& left_out);

}  // namespace attn
