// The axis `packed`: what a list of lengths decides, and what does not go with packed sequences.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "harness/cell/key.h"
#include "harness/plan/grammar.h"
#include "harness/plan/plan.h"

namespace attn {

// The axes that a list decides: its longest length, and how many there are.
inline constexpr std::array kDecidedByList = {"length", "batch"};
bool is_decided_by_list(const Axes& axes, const std::string& name);

// Where `axes` hold packed sequences: each by its shortest word, and, where all are lists, without
// the axes that a list decides. Error where a word is none, where drawn lengths are of one
// sequence, or where the request asks for what a list decides.
void settle_packings(const SweepRequest& request, std::vector<Setting>& axes);

// Length and batch as a list has them; nothing where there is none.
void decide_by_packing(Axes& axes);

}  // namespace attn
