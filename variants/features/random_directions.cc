// Random directions of feature maps: Gaussian rows, or blocks of orthogonal rows with Gaussian
// lengths (arXiv:2009.14794, section 2.4). O(heads·count·dim²). Computed in double, so that both
// builds have the same numbers.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dense/dense.h"
#include "variants/features/feature_maps.h"

namespace attn {
namespace {

using Square = std::vector<double>;  // [dim, dim] by columns

Square gaussian(int64_t dim, Rng& rng) {
  Square square(static_cast<size_t>(dim * dim));
  for (double& x : square) x = rng.normal();
  return square;
}

size_t at(int64_t dim, int64_t row, int64_t col) { return static_cast<size_t>(col * dim + row); }

}  // namespace

Tensor random_directions(int64_t heads, int64_t count, int64_t dim, bool orthogonal, Rng rng) {
  const Tensor omega({heads, count, dim});
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t begin = 0; begin < count; begin += dim) {
      // Norms of rows are chi distributed, whatever the direction.
      const Square lengths = gaussian(dim, rng);
      Square block = orthogonal ? gaussian(dim, rng) : lengths;
      // The signs of R's diagonal follow the data: with them in Q, E[Q_jj] would be below 0 and the
      // estimate of the kernel off by a quarter.
      if (orthogonal) attn_dense::orthonormalise(dim, block.data());
      for (int64_t i = 0; i < std::min(count - begin, dim); ++i) {
        double squares = 0;
        for (int64_t j = 0; j < dim; ++j)
          squares += lengths[at(dim, i, j)] * lengths[at(dim, i, j)];
        const double length = orthogonal ? std::sqrt(squares) : 1;
        for (int64_t j = 0; j < dim; ++j)
          omega[(head * count + begin + i) * dim + j] =
              static_cast<real>(length * block[at(dim, i, j)]);
      }
    }
  return omega;
}

Tensor opposite_pairs(const Tensor& half) {
  const int64_t count = 2 * half.dim(1), dim = half.dim(2);
  const Tensor omega({half.dim(0), count, dim});
  for (int64_t row = 0; row < half.dim(0) * count; ++row) {
    const int64_t head = row / count, f = row % count;
    const real* const from = half.data() + (head * half.dim(1) + f / 2) * dim;
    for (int64_t c = 0; c < dim; ++c) omega[row * dim + c] = f % 2 ? -from[c] : from[c];
  }
  return omega;
}

}  // namespace attn
