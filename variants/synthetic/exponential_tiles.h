// The pieces of exponential_sums(): running sums over all sources, and those of tiles that lie
// outside of every window. Internal to exponential_scan.cc and exponential_sums.cc.
#pragma once

#include "variants/synthetic/exponential_sums.h"

namespace attn::exponential_detail {

inline constexpr int64_t kSourceFlops = 6;  // of a source and channel in running sums

// exponential_sums() without biases.
void scan(const ExponentialPairs& pairs, const SourceRows& from, const OnSums& finish);
int64_t scan_reals(const ExponentialPairs& pairs);

// Adds `rows` rows of `sums` [2·dim] that share `top` [dim] to rows that share `to_top`. Two tops
// of -infinity stand for no sources. work [2·dim].
void merge(int64_t dim, int64_t rows, const real* top, const real* sums, real* to_top,
           real* to_sums, real* work);

// The sums over what each tile of targets sees outside its window: [all heads, tiles, 3·dim].
Tensor far_sums(const ExponentialPairs& pairs, const Exponentials& e);
inline double far_flops(const ExponentialPairs& p, int64_t valid) {
  return p.is_local() ? 4.0 * static_cast<double>(p.dim * valid) : 0;
}

}  // namespace attn::exponential_detail
