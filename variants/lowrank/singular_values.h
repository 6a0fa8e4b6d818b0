// The singular value decomposition of a square matrix of any rank, in double, in a workspace of the
// caller: a pivoted QR decomposition, then rotations of pairs of its rows (Hestenes 1958; Drmač and
// Veselić 2008). Some 30·n³ FLOPs. A divide and conquer, as Eigen's, fails on uniform weights.
#pragma once

#include <cstdint>

#include <Eigen/Core>

namespace attn {

using MatrixMap = Eigen::Map<Eigen::MatrixXd>;

class SingularValues {
 public:
  static constexpr int64_t numbers(int64_t n) { return 4 * n * n + n; }  // of `space`

  // All entries must be finite, and one of them not 0.
  SingularValues(const MatrixMap& matrix, double* space);

  // matrix = left·diag(values)·rightᵀ, both orthogonal. Values fall; those beyond the numerical
  // rank are 0.
  const MatrixMap& left() const { return left_; }
  const MatrixMap& right() const { return right_; }
  const Eigen::Map<Eigen::VectorXd>& values() const { return values_; }

  // Parts of the workspace that are free again, [n, n].
  MatrixMap& first() { return first_; }
  MatrixMap& second() { return second_; }

 private:
  int64_t rotate(const MatrixMap& matrix);  // the rank of the pivoted QR decomposition
  void sort(int64_t rank);
  void complete(int64_t rank);

  MatrixMap left_, right_, first_, second_;
  Eigen::Map<Eigen::VectorXd> values_;
};

}  // namespace attn
