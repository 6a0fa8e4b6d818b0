// Relative positions as a bias of each distance, added to the logits of self-attention: ALiBi
// (Press et al. 2021, arXiv:2108.12409), T5's buckets (Raffel et al. 2019, arXiv:1910.10683),
// KERPLE (Chi et al. 2022, arXiv:2205.09921). All layers of a model share one. O(heads · n) a
// forward.
#pragma once

#include <cstdint>
#include <vector>

#include "variants/api/attention.h"

namespace attn {

// Of r = |i - j| for the positions of query and key:
//   alibi         -m_h·r with the slopes m of slopes_of(), nothing learned
//   t5            a learned number of each head for each of 32 buckets of distances
//   kerple        -p_h·log(1 + a_h·r), learned p and a
//   kerple_power  -a_h·r^p_h, learned p and a
enum class Distances : uint8_t { none, alibi, t5, kerple, kerple_power };

class DistanceBias {
 public:
  // `causal`: T5 has buckets of the past alone.
  DistanceBias(Distances kind, int64_t heads, bool causal, uint64_t seed);

  // table[h][j - i + kv_len - 1] -> [heads, q_len + kv_len - 1].
  Var table(int64_t q_len, int64_t kv_len) const;
  // The biases of keys 0 to positions - 1 steps before a query: [heads, positions].
  Tensor past(int64_t positions) const;
  const std::vector<Weight>& weights() const { return weights_; }

 private:
  Distances kind_;
  int64_t heads_;
  bool causal_;
  std::vector<Weight> weights_;  // t5: table [32, heads]; kerple: p and a [heads]
};

// 2^(-8h/heads) for h = 1 to heads, a power of two; else the slopes of the largest power of two P
// below, then every second slope of 2P.
std::vector<double> slopes_of(int64_t heads);

inline constexpr int64_t kBuckets = 32;
// T5's bucket of the distance i - j, where distances of 128 and more share one; causal: of the past
// alone, else keys behind the query have the later half.
int64_t bucket_of(int64_t distance, bool causal);

}  // namespace attn
