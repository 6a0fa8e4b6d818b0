// Outputs beside those of a reference, row by row. Variants that choose keys may choose others than
// the reference where two candidates differ by rounding alone.
#pragma once

#include <vector>

#include "harness/check/subject.h"
#include "variants/api/reference.h"

namespace attn {

// The largest difference over max(largest entry of `wanted`, 0.1), and its row, without the rows
// that `left_out` marks [batch · heads · len]; empty: none. NaN is the largest.
Gap gap_to(const Tensor& got, const oracle::Array& wanted, const std::vector<bool>& left_out);

// The rows [batch · heads · len] of `wanted`, the reference at `at`, that changes of queries and
// keys within rounding move by more than `allowed`, in the unit of gap_to. Empty where there are
// none or more than a few: then no tie explains a difference. Costs eight evaluations.
std::vector<bool> tied_rows(const Reference& reference, const ReferenceInputs& at,
                            const oracle::Array& wanted, double allowed);

}  // namespace attn
