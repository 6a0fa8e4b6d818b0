// Dilated attention: several lists of keys for each query, in one softmax. A key that is on two
// lists counts twice. Ding et al. 2023, arXiv:2307.02486, eqs. 4-10. Level 0 reads blocks in place;
// further levels are gathered for the tiled kernel. 4·d FLOPs a pair; memory n·d.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/patterns/pattern_decoder.h"

namespace attn {

// Level l has segments of segment·ratio^l positions and a dilation of ratio^l: inside each segment
// every dilation-th position, from an offset of the head on, sees the others of these.
struct DilatedPattern {
  int64_t segment = 512, ratio = 2, levels = 4;
  bool causal = false;

  int64_t dilation(int64_t level) const;  // at most kLongest
  int64_t length(int64_t level) const { return segment * dilation(level); }
  // Of one of `heads` heads. Neighbouring heads share an offset, as in the authors' code.
  int64_t offset(int64_t head, int64_t heads, int64_t level) const {
    const int64_t step = dilation(level);
    return head / ((heads + step - 1) / step);
  }

  static constexpr int64_t kLongest = int64_t{1} << 30;
};

// q, k and v [batch, heads, len, dim].
Var dilated_attention(const Var& q, const Var& k, const Var& v, const DilatedPattern& pattern,
                      const std::vector<int64_t>& kv_lengths);
Cost dilated_cost(const AttentionShape& shape, const DilatedPattern& pattern);
CacheLayout dilated_cache(const DilatedPattern& pattern, int64_t heads, int64_t capacity);

}  // namespace attn
