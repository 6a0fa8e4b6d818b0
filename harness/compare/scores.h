// Changes of test scores: over seeds that both files trained with, or over the test examples.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "harness/cell/row.h"
#include "harness/compare/change.h"

namespace attn {

struct ScoreChange {
  Change change;       // of the score, or of the logarithm of a squared error; above 0 is worse
  double least_p = 0;  // of a second test, of no change at all; the greater probability counts
};

using SeedPair = std::pair<const Row*, const Row*>;  // before and after, of one seed

// Student's t on the differences; nullopt of fewer than two seeds.
std::optional<ScoreChange> change_over_seeds(const std::vector<SeedPair>& seeds);
// Of one seed, by what each example scored before and after, with McNemar's exact test where an
// example is right or wrong. nullopt where the rows do not say, or of other examples.
std::optional<ScoreChange> change_over_examples(const SeedPair& pair);

}  // namespace attn
