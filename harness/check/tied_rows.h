// Outputs beside those of a reference, row by row. Variants that choose keys may choose others than
// the reference where two candidates differ by rounding alone.
#pragma once

#include <vector>

#include "core/base/rng.h"
#include "harness/check/subject.h"
#include "variants/api/reference.h"

namespace attn {

// A reference's outputs, and what it gives where rounding decides otherwise.
struct Wanted {
  oracle::Array outputs;
  // Rows [batch · heads · len] of which rounding decides; empty: none.
  std::vector<bool> tied;
  std::vector<oracle::Array> others;  // outputs for inputs within rounding

  bool is_tied(int64_t row) const { return !tied.empty() && tied[static_cast<size_t>(row)]; }
};

// The largest difference over max(largest entry of the outputs, 0.1), and its row; of a tied row
// the smallest of those from the outputs and from the others. NaN is the largest.
Gap gap_to(const Tensor& got, const Wanted& wanted);

// Inputs whose queries and keys are others within rounding.
ReferenceInputs within_rounding(ReferenceInputs at, Rng& random);

// Marks the rows that changes of queries and keys within rounding move by more than `allowed`, in
// the unit of gap_to, and keeps what they then give. Marks none where there are more than a few: no
// tie explains a difference there. Costs eight evaluations.
void find_ties(const Reference& reference, const ReferenceInputs& at, double allowed,
               Wanted& wanted);

}  // namespace attn
