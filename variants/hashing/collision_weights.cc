// Expected collisions and their derivatives; see collision_weights.h.
#include "variants/hashing/collision_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attn {
namespace {

// Products so near to ±1 are those of parallel rows up to rounding.
constexpr real kParallel = 1 - 4 * kEpsilon;

real power(real x, int64_t exponent) {
  real result = 1;
  for (; exponent > 0; exponent /= 2, x *= x)
    if (exponent % 2 == 1) result *= x;
  return result;
}

}  // namespace

CollisionWeights::CollisionWeights(int64_t bits, int64_t dim)
    : bits_(bits), root_(std::sqrt(static_cast<real>(dim))) {
  by_pair = true;
  kept = 1;
}

// The slope bits·w/(π·(1 - θ/π)·sin θ) has no bound at parallel rows, where it counts as 0: there
// the angle has a kink.
CollisionWeights::Weight CollisionWeights::weight_of(real logit) const {
  const real product = logit * root_;
  if (product >= kParallel) return {1, 0};
  if (product <= -kParallel) return {0, 0};
  const real pi = std::numbers::pi_v<real>, near = 1 - std::acos(product) / pi,
             below = power(near, bits_ - 1);
  const real sine = std::sqrt((1 - product) * (1 + product));
  return {below * near, static_cast<real>(bits_) * below * root_ / (pi * sine)};
}

void CollisionWeights::weigh(const RowStrip& x) const {
  for (int64_t r = 0; r < x.rows; ++r) {
    real* const row = x.row(0, r);
    for (int64_t j = 0; j < x.counts[r]; ++j) row[j] = weight_of(row[j]).value;
  }
}

RowStrip CollisionWeights::keep(const RowStrip& x, const RowStrip& kept_maps,
                                const RowStrip&) const {
  for (int64_t r = 0; r < x.rows; ++r) {
    real *const row = x.row(0, r), *const slopes = kept_maps.row(0, r);
    for (int64_t j = 0; j < x.counts[r]; ++j) {
      const Weight weight = weight_of(row[j]);
      row[j] = weight.value, slopes[j] = weight.slope;
    }
  }
  return x;
}

void CollisionWeights::gradient(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& g,
                                double*) const {
  for (int64_t r = 0; r < x.rows; ++r) {
    const real* const slopes = kept_maps.row(0, r);
    real* const grad = g.row(0, r);
    for (int64_t j = 0; j < x.counts[r]; ++j) grad[j] *= slopes[j];
  }
}

Cost expected_collision_cost(const AttentionShape& s, const RowWeights& rule) {
  const auto row = sizeof(real) * static_cast<double>(s.batch * s.heads * s.head_dim);
  const double queries = row * static_cast<double>(s.q_len),
               keys = row * static_cast<double>(s.kv_len);
  Cost cost = strip_cost(s, rule);
  cost.bytes += 4 * queries + 2 * keys;
  cost.peak_bytes = std::max(cost.peak_bytes + queries + keys, 3 * queries + keys);
  return cost;
}
}  // namespace attn
