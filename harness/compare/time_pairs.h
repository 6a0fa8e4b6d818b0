// Pairs of times. Private to harness/compare.
#pragma once

#include <vector>

#include "harness/compare/tested.h"
#include "harness/compare/undisturbed.h"

namespace attn {

// What both files show of the machines that they were measured on.
struct BothMachines {
  MachineSeen before, after;
};

std::vector<Tested> times_alone(const std::vector<RowPair>& pairs, double threshold,
                                const BothMachines& seen = {});
// The time of each variant over that of exact attention on the same axes in the same file. A pair
// without exact attention beside it is added to `left_out`.
std::vector<Tested> times_to_exact(const std::vector<RowPair>& pairs, double threshold,
                                   const BothMachines& seen, std::vector<LeftOut>& left_out);

}  // namespace attn
