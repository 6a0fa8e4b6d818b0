// Random directions of feature maps: Gaussian rows, or blocks of orthogonal rows with Gaussian
// lengths (arXiv:2009.14794, section 2.4). O(heads·count·dim²). Computed in double, so that both
// builds have the same numbers.
#include <algorithm>

#include <Eigen/QR>

#include "variants/features/feature_maps.h"

namespace attn {
namespace {

using Square = Eigen::MatrixXd;

Square gaussian(int64_t dim, Rng& rng) {
  return Square::NullaryExpr(dim, dim, [&] { return rng.normal(); });
}

// Haar distributed. Householder's QR fixes the sign of R's diagonal by the data: without undoing
// that, Q is biased (E[Q_jj] < 0) and the kernel estimate is off by a quarter.
Square random_rotation(int64_t dim, Rng& rng) {
  const Eigen::HouseholderQR<Square> qr(gaussian(dim, rng));
  Square q = qr.householderQ() * Square::Identity(dim, dim);
  for (int64_t j = 0; j < dim; ++j)
    if (qr.matrixQR()(j, j) < 0) q.col(j) = -q.col(j);
  return q;
}

}  // namespace

Tensor random_directions(int64_t heads, int64_t count, int64_t dim, bool orthogonal, Rng rng) {
  const Tensor omega({heads, count, dim});
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t begin = 0; begin < count; begin += dim) {
      const Square lengths =
          gaussian(dim, rng);  // row norms are chi distributed, whatever the direction
      const Square block =
          orthogonal ? Square(lengths.rowwise().norm().asDiagonal() * random_rotation(dim, rng))
                     : lengths;
      for (int64_t i = begin; i < std::min(count, begin + dim); ++i)
        for (int64_t j = 0; j < dim; ++j)
          omega[(head * count + i) * dim + j] = static_cast<real>(block(i - begin, j));
    }
  return omega;
}

Tensor opposite_pairs(const Tensor& half, int64_t count) {
  const int64_t dim = half.dim(2);
  const Tensor omega({half.dim(0), count, dim});
  for (int64_t row = 0; row < half.dim(0) * count; ++row) {
    const int64_t head = row / count, f = row % count;
    const real* const from = half.data() + (head * half.dim(1) + f / 2) * dim;
    for (int64_t c = 0; c < dim; ++c) omega[row * dim + c] = f % 2 ? -from[c] : from[c];
  }
  return omega;
}

}  // namespace attn
