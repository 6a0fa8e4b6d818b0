// Scores of the labels of each group that a task names: Example::slices and Example::label_slices.
// O(labels · slices · log labels).
#pragma once

#include <vector>

#include "harness/train/evaluate.h"

namespace attn {

// A slice of at most so many values has a bin for each of them. The values of others share a bin
// from a power of two to the next one, and 0 is alone.
inline constexpr size_t kSingleValues = 8;

// Of `answers` to all labels of `batches`, by name and then in ascending order. Slices of examples
// come before those of labels. Empty where the batches hold no slices.
std::vector<SliceBin> slice_bins(const std::vector<Answer>& answers,
                                 const std::vector<Batch>& batches);

}  // namespace attn
