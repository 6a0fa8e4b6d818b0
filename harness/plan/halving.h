// Tuning by successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943): every choice is
// trained for few steps with the first seed, the better half by validation for twice as many, and
// so on; then all seeds in full at the choice that is left. Costs about two and a half trainings
// for six choices, where a grid costs six for each seed. The rounds end early where choices reach
// the setting target: validation tells no more of these, and the middle one of them, in the order
// given, is the farthest from the rates that fail. Where the best choice of a round has not begun
// to learn, all that are as good go on, which costs up to twice as much; forecasts do not know.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/plan/plan.h"

namespace attn {

// The fewest steps of a training that can be halved into rounds.
inline constexpr int64_t kLeastSteps = 4;
inline constexpr const char* kHalving = "halving";

// Steps of each round's trainings: halves of `steps`, the last round's being one half. The same
// for all variants, and never fewer than twice the warm-up and two validations.
std::vector<int64_t> halving_budgets(size_t choices, const Params& training);

// The cells of `grid`, a plan with every choice and seed, whose turn has come: what is not tuned by
// halving, the trials of the rounds that `rows` decide and of the one after them, and in the end
// the choice with all its seeds. Pure: the same rows give the same cells, so that a search that was
// cut short goes on from its rows. `rows` are looked up by cell.
std::vector<Cell> halved(const SweepRequest& request, const std::vector<Cell>& grid,
                         const std::map<std::string, const Row*>& rows);

// All cells that a search will train, for forecasts: as if the first choices always went on.
std::vector<Cell> halved_as_forecast(const SweepRequest& request, const std::vector<Cell>& grid);

}  // namespace attn
