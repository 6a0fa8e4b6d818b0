// Outputs of a timed pass beside those that they must equal, row by row.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/workload.h"
#include "variants/api/reference.h"

namespace attn {

// What was compared, and what is wrong.
struct ComparedRows {
  int64_t rows = 0;
  double error = 0, bound = 0;       // as in Verified
  std::optional<std::string> fault;  // where the error is beyond the bound
  std::vector<int64_t> tied;         // positions where rounding chooses keys, see compare_outputs
};

// What one forward pass read, in double, with the rows that are asked for.
ReferenceInputs reference_inputs(const SeenPass& seen, std::vector<int64_t> rows);

// How far numbers of a row may be from what is wanted. The unit is the largest entry of the row
// that is wanted, or 0.01 of the largest of all rows.
struct Allowance {
  double of_unit = 0;    // rounding of sums, and in bfloat16 of their weights
  double of_itself = 0;  // rounding of the output to bfloat16
};
Allowance allowance_of(const SeenPass& seen, Dtype dtype, int64_t length,
                       CacheType cache = CacheType::float32);

// `got` [batch, heads, len, dim] beside `wanted` at `rows`. `first` is the position of the first
// row of `got` in `wanted`, `named_from` the position that a fault gives the first row of `wanted`.
ComparedRows compare_rows(const Tensor& got, const oracle::Array& wanted,
                          const std::vector<int64_t>& rows, int64_t first, const Allowance& allowed,
                          const std::string& against, int64_t named_from = 0);

// The outputs of the pass beside those of the variant's declared reference. A variant that chooses
// keys may choose others where two candidates differ by rounding alone: a row that is off is tied
// where the reference gives it for inputs within rounding, and no more than one row in sixteen may
// be.
ComparedRows compare_outputs(const SeenPass& seen, const ReferenceInputs& inputs, Dtype dtype);

// What the pass hands on to the next layer beside the declared reference (VariantInfo::handed_on).
ComparedRows compare_handed(const SeenPass& seen, const ReferenceInputs& inputs);

// The first `length` positions of the pass.
SeenPass first_positions(const SeenPass& seen, int64_t length);

}  // namespace attn
