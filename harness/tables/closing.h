// The few figures that a reader wants first: one line a variant, with where it overtakes exact
// attention, its time and memory beside it at the longest length, and its score on each task; and
// what they add up to, in sentences.
#pragma once

#include <optional>
#include <vector>

#include "harness/tables/table.h"

namespace attn {

// nullopt where `rows` have fewer than two of speed, memory and accuracy, or of variants, or no
// exact attention.
// Its notes are the sentences. `floors`: of the machine of the rows.
std::optional<Table> closing_table(const std::vector<Row>& rows, const NoiseFloor& floors = {});

}  // namespace attn
