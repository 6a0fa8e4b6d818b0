// A sum of branches of attention, each times its gate: o = Σ_b σ(x_b)·o_b. Yuan et al. 2025,
// arXiv:2502.11089, eq. 5. 2·n·d FLOPs a branch, which are not counted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/autograd/var.h"

namespace attn {

inline constexpr int64_t kBranches = 3;

// Each branch [batch, heads, len, dim], gates [batch, heads, len, 3]. Rows from lengths[b] on are
// 0, and their gates are not read.
Var gated_branches(const std::array<Var, kBranches>& branches, const Var& gates,
                   const std::vector<int64_t>& lengths);

}  // namespace attn
