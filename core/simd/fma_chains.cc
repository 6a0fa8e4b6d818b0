// One source, compiled by Highway for each instruction set. Two FMA units with a latency of 4 or 5
// cycles need 8 to 10 chains. 12 chains and the two operands use 14 of the 16 registers of AVX2.
#include "core/simd/fma_chains.h"

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/fma_chains.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<real>;
constexpr int kChains = 12;

real run_chains(int64_t rounds, real factor, real offset) {
  const Tag d;
  const auto x = hn::Set(d, factor), y = hn::Set(d, offset);
  hn::Vec<Tag> chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = hn::Set(d, static_cast<real>(i));
  for (int64_t round = 0; round < rounds; ++round)
    for (int i = 0; i < kChains; ++i) chain[i] = hn::MulAdd(chain[i], x, y);
  real sum = 0;
  for (int i = 0; i < kChains; ++i) sum += hn::GetLane(hn::SumOfLanes(d, chain[i]));
  return sum;
}

int64_t flops_of_round() { return 2 * kChains * static_cast<int64_t>(hn::Lanes(Tag())); }

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(run_chains);
HWY_EXPORT(flops_of_round);

real fma_chains(int64_t rounds, real factor, real offset) {
  return HWY_DYNAMIC_DISPATCH(run_chains)(rounds, factor, offset);
}
int64_t fma_round_flops() { return HWY_DYNAMIC_DISPATCH(flops_of_round)(); }

}  // namespace attn
#endif
