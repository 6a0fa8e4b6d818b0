// The head for pairs of documents: the two-tower head of Long Range Arena's retrieval task.
// Tay et al. 2020, arXiv:2011.04006, 2.2.3. Time O(size · width · hidden).
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "harness/model/weights.h"

namespace attn {

class PairHead {
 public:
  PairHead(int64_t width, int64_t hidden, int64_t classes, uint64_t seed);
  // x [2 · size, width], with the two documents of an example in consecutive rows ->
  // logits [size, classes].
  Var forward(const Var& x) const;
  std::vector<Weight> weights() const;

 private:
  std::vector<Weight> weights_;  // three times weight [in, out] and bias [out]
};

}  // namespace attn
