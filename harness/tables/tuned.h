// Settings chosen on validation, as `--tune` and the tuned profiles promise.
#pragma once

#include <vector>

#include "harness/cell/row.h"

namespace attn {

// The rows without trials of a search, and without those of tuned settings that lost: among rows
// that differ in seed and in the settings named by their `tuned` alone, the setting whose mean
// validation score over the seeds is best stays (a cell that failed counts as the worst; a setting
// with fewer rows than another, in a sweep that is not done, loses to it; a tie goes to the smaller
// values). The test score has no say.
std::vector<Row> chosen_on_validation(const std::vector<Row>& rows);

// Among how many settings that of this tuned row was chosen.
size_t choices_beside(const Row& row, const std::vector<Row>& rows);

}  // namespace attn
