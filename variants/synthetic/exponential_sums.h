// Sums over positions with weights that are exponentials, of each channel: Σ_j e^(x_jc + w_ij)·a_jc
// and the same of b, with w_ij = left_i·right_j or a number of i - j. Zhai et al. 2021,
// arXiv:2105.14103, eqs. 2-4. For each pair a tile of e^w and 4·dim FLOPs of products; for each
// tile a maximum of x in each channel, never an n×n buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/function.h"
#include "core/tensor/tensor.h"

namespace attn {

// Which pairs there are: target i sees source j.
struct ExponentialPairs {
  // Targets and sources of a tile. A causal tile on the diagonal costs an exponential for each pair
  // and channel, so it is small.
  static constexpr int64_t kTile = 32;

  int64_t batch = 1, heads = 1, len = 1, dim = 1, rank = 0;
  bool biased = false;  // else w is 0 everywhere
  int64_t window = 0;   // w is 0 where |i - j| >= window
  enum class Sees : uint8_t { all, past, future } sees = Sees::all;
  std::vector<int64_t> lengths = {};  // valid sources of each batch entry; empty: all

  int64_t all_heads() const { return batch * heads; }
  int64_t tiles() const { return (len + kTile - 1) / kTile; }
  int64_t valid(int64_t entry) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(entry)];
  }
  int64_t rows(int64_t tile) const;  // targets of a tile
  bool is_local() const { return window < len; }
  // Tiles of sources that target tile `at` sees: those in [begin, near) and [far, end) whole and
  // without biases; those in [near, far) with them, and the tile `at` itself, if sees is not all,
  // pair by pair.
  struct Tiles {
    int64_t begin, near, far, end;
  };
  Tiles of(int64_t at, int64_t entry) const;
  double near_pairs(
      bool whole) const;  // without padding; whole: also those of tiles on the diagonal

  bool operator==(const ExponentialPairs&) const = default;
};

struct Biases {
  const real *left = nullptr, *right = nullptr;  // [len, rank]
  // Or of each head h: w_ij = distance[h·count + origin + sign·(i - j)], 0 outside of its count.
  const real* distance = nullptr;  // [heads, count]
  int64_t count = 0, origin = 0, sign = 1;
  // Whether |w| stays so small that e^w needs no maximum: products compute the sums. Beyond,
  // every pair and channel has an exponential of its own.
  bool small = true;
};
Biases biases_of(const ExponentialPairs& pairs, const Tensor& left, const Tensor& right);
// distance [heads, window], or [heads, 2·window - 1] where pairs see the future.
Biases biases_of(const ExponentialPairs& pairs, const Tensor& distance);

// The biases [rows, kTile] of target tile `at` and source tile `from`; 0 outside the window. Heads
// differ where they depend on the distance. `work` has bias_work() numbers.
void tile_biases(const ExponentialPairs& pairs, const Biases& biases, int64_t head, int64_t at,
                 int64_t from, real* work, real* to);
int64_t bias_work(const ExponentialPairs& pairs);

// e^(x - top)·a and e^(x - top)·b of all sources, side by side, with the largest x of each tile and
// channel. b null: 1.
struct Exponentials {
  Tensor rows;  // [all heads, len, 2·dim]
  Tensor tops;  // [all heads, tiles, dim]
};
struct SourceRows {
  const real *x = nullptr, *a = nullptr, *b = nullptr;  // [all heads, len, dim]
};
Exponentials exponentials_of(const ExponentialPairs& pairs, const SourceRows& from);
int64_t exponential_reals(const ExponentialPairs& pairs);

// Σ e^(x + w - top)·a and ·b for `count` targets from `first` on of one head: top [count, dim],
// sums [count, 2·dim]. A target without sources has top -infinity and sums of 0.
struct TargetSums {
  int64_t head, first, count;
  const real *top, *sums;
};
using OnSums = FunctionRef<void(const TargetSums&, real* work)>;  // work: [2·dim]

void exponential_sums(const ExponentialPairs& pairs, const Biases& biases, const SourceRows& from,
                      const OnSums& finish);
int64_t exponential_sums_bytes(const ExponentialPairs& pairs);  // peak
double exponential_sums_flops(const ExponentialPairs& pairs);

// The running form, for scans and decoders: state [3·dim] is top, Σ·a and Σ·b; adds one source.
// work [2·dim]; b null: 1. A new state has a top of -infinity.
void clear_sums(int64_t dim, real* state);
void add_source(int64_t dim, const real* x, const real* a, const real* b, real bias, real* state,
                real* work);

}  // namespace attn
