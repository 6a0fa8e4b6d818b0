// Variances of few observations, steadied by those of other cells: an empirical Bayes estimate
// (Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3, article 3).
#pragma once

#include <vector>

namespace attn {

struct Variance {
  double value = 0;
  double degrees = 0;  // of freedom, above 0
};

// The variances of the cells of one file. Each is drawn towards what is usual in the file, by as
// much as the file shows that cells are alike, and gains degrees of freedom by that. Where cells
// differ widely, or are fewer than eight, each keeps nearly or exactly its own. O(cells).
std::vector<Variance> steadied(const std::vector<Variance>& own);

}  // namespace attn
