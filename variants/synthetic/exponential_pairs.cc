// Which tiles see each other, the biases of a tile, and exponentials relative to the maximum of a
// tile. See exponential_sums.h.
#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/synthetic/exponential_sums.h"

namespace attn {
namespace {

constexpr int64_t kPairTile = ExponentialPairs::kTile;

// e^±30 times thousands of positions and its inverse are far from the limits of a float.
constexpr double kMostBias = 30;

}  // namespace

int64_t ExponentialPairs::rows(int64_t tile) const {
  return std::min(kPairTile, len - tile * kPairTile);
}

ExponentialPairs::Tiles ExponentialPairs::of(int64_t at, int64_t entry) const {
  const int64_t all = (valid(entry) + kPairTile - 1) / kPairTile, first = at * kPairTile;
  const int64_t begin = sees == ExponentialPairs::Sees::future ? std::min(at, all) : 0,
                end = sees == ExponentialPairs::Sees::past ? std::min(at + 1, all) : all;
  return {begin, std::clamp(std::max<int64_t>(0, first - window + 1) / kPairTile, begin, end),
          std::clamp((first + window + 2 * kPairTile - 2) / kPairTile, begin, end), end};
}

double ExponentialPairs::near_pairs(bool whole) const {
  double pairs = 0;
  for (int64_t at = 0; at < tiles(); ++at) {
    const Tiles range = of(at, 0);
    for (int64_t from = range.near; from < range.far; ++from)
      pairs += static_cast<double>(from == at && sees != ExponentialPairs::Sees::all && !whole
                                       ? rows(at) * (rows(at) + 1) / 2
                                       : rows(at) * rows(from));
  }
  return pairs;
}

Biases biases_of(const ExponentialPairs& p, const Tensor& left, const Tensor& right) {
  const auto longest = [&](const Tensor& x) {
    double most = 0;
    for (int64_t i = 0; i < p.len; ++i) {
      const real* const row = x.data() + i * p.rank;
      most = std::max(most, static_cast<double>(row_dot(row, row, p.rank)));
    }
    return std::sqrt(most);
  };
  Biases biases{.left = left.data(), .right = right.data()};
  biases.small = longest(left) * longest(right) <= kMostBias;  // |u·v| <= |u||v|
  return biases;
}

Biases biases_of(const ExponentialPairs& p, const Tensor& distance) {
  real most = 0;
  for (const real w : distance.values()) most = std::max(most, std::abs(w));
  Biases biases{.distance = distance.data(), .count = distance.dim(1)};
  if (p.sees == ExponentialPairs::Sees::all) biases.origin = biases.count / 2;
  biases.small = static_cast<double>(most) <= kMostBias;
  return biases;
}

int64_t bias_work(const ExponentialPairs& p) { return packed_reals(kPairTile, p.rank); }

void tile_biases(const ExponentialPairs& p, const Biases& biases, int64_t head, int64_t at,
                 int64_t from, real* work, real* to) {
  const Mark mark(Part::scores);
  const int64_t rows = p.rows(at), cols = p.rows(from);
  const int64_t apart = (at - from) * kPairTile;  // of the first target and the first source
  if (biases.distance) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < kPairTile; ++c) {
        const int64_t i = biases.origin + biases.sign * (apart + r - c);
        to[r * kPairTile + c] =
            i >= 0 && i < biases.count ? biases.distance[head * biases.count + i] : real(0);
      }
    return;
  }
  pack_transposed(biases.right + from * kPairTile * p.rank, cols, p.rank, p.rank, work);
  product(rows, kPairTile, p.rank, {biases.left + at * kPairTile * p.rank, p.rank},
          packed(work, p.rank), to, kPairTile);
  count_flops(2 * static_cast<double>(rows * cols * p.rank));
  if (std::abs(apart) + kPairTile <= p.window) return;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < kPairTile; ++c)
      if (std::abs(apart + r - c) >= p.window) to[r * kPairTile + c] = 0;
}

Exponentials exponentials_of(const ExponentialPairs& p, const SourceRows& from) {
  const int64_t dim = p.dim;
  const Exponentials e{Tensor({p.all_heads(), p.len, 2 * dim}),
                       Tensor({p.all_heads(), p.tiles(), dim})};
  parallel_for(p.all_heads() * p.tiles(), 1, [&](int64_t begin, int64_t end) {
    const Mark mark(Part::softmax);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t head = t / p.tiles(), first = t % p.tiles() * kPairTile,
                    count = std::min(kPairTile, p.valid(head / p.heads) - first);
      real* const top = e.tops.data() + t * dim;
      std::fill_n(top, dim, -kInfinity);
      for (int64_t j = 0; j < count; ++j) {
        const real* const x = from.x + (head * p.len + first + j) * dim;
        for (int64_t c = 0; c < dim; ++c) top[c] = x[c] > top[c] ? x[c] : top[c];
      }
      for (int64_t j = 0; j < count; ++j) {
        const int64_t at = (head * p.len + first + j) * dim;
        real *const left = e.rows.data() + 2 * at, *const right = left + dim;
        for (int64_t c = 0; c < dim; ++c) right[c] = from.x[at + c] - top[c];
        exp_row(dim, right, 1, 0, right);
        for (int64_t c = 0; c < dim; ++c) left[c] = right[c] * from.a[at + c];
        for (int64_t c = 0; from.b && c < dim; ++c) right[c] *= from.b[at + c];
      }
    }
  });
  return e;
}

int64_t exponential_reals(const ExponentialPairs& p) {
  return p.all_heads() * (2 * p.len + p.tiles()) * p.dim;
}

}  // namespace attn
