// A·P = Q·R; the columns of Y = P·Rᵀ are rotated until they are orthogonal, Y·J: then A =
// (Q·J)·(Y·J)ᵀ. Only rows of R above rounding errors take part. See singular_values.h.
#include "core/dense/singular_values.h"

#include <cmath>
#include <limits>

#include <Eigen/Core>
#include <Eigen/QR>

namespace attn_dense {
namespace {

using Reference = Eigen::Ref<Eigen::MatrixXd>;
using ConstantMatrix = Eigen::Map<const Eigen::MatrixXd>;
using MatrixMap = Eigen::Map<Eigen::MatrixXd>;

constexpr double kRounding = std::numeric_limits<double>::epsilon();
constexpr int kMostSweeps = 40;  // pairs converge quadratically: about 6 are needed

struct Rotation {
  double cosine, sine;

  void turn(Reference columns, int64_t p, int64_t q) const {
    double *const x = columns.col(p).data(), *const y = columns.col(q).data();
    for (int64_t i = 0; i < columns.rows(); ++i) {
      const double before = x[i];
      x[i] = cosine * before - sine * y[i];
      y[i] = sine * before + cosine * y[i];
    }
  }
};

// Makes the columns of y orthogonal; `turned` gets the same rotations. squares: workspace.
void orthogonalise(Reference y, Reference turned, double* squares) {
  const double most = kRounding * std::sqrt(static_cast<double>(y.rows()));
  bool moved = true;
  for (int sweep = 0; moved && sweep < kMostSweeps; ++sweep) {
    moved = false;
    for (int64_t p = 0; p < y.cols(); ++p) squares[p] = y.col(p).squaredNorm();
    for (int64_t p = 0; p < y.cols(); ++p)
      for (int64_t q = p + 1; q < y.cols(); ++q) {
        const double product = y.col(p).dot(y.col(q));
        if (!(std::abs(product) > most * std::sqrt(squares[p]) * std::sqrt(squares[q]))) continue;
        moved = true;
        const double zeta = (squares[q] - squares[p]) / (2 * product);
        const double tangent = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::hypot(1, zeta));
        const double cosine = 1 / std::hypot(1, tangent);
        const Rotation by{cosine, cosine * tangent};
        by.turn(y, p, q);
        by.turn(turned, p, q);
        for (const int64_t at : {p, q}) {
          const double change = (at == p ? -1 : 1) * tangent * product;
          // A difference of nearly equal numbers is no square.
          squares[at] = squares[at] + change > 0.1 * squares[at] ? squares[at] + change
                                                                 : y.col(at).squaredNorm();
        }
      }
  }
}

class Decomposition {
 public:
  Decomposition(const ConstantMatrix& matrix, double* space);

 private:
  int64_t rotate(const ConstantMatrix& matrix);  // the rank of the pivoted QR decomposition
  void sort(int64_t rank);
  void complete(int64_t rank);

  MatrixMap left_, right_, first_, second_;
  Eigen::Map<Eigen::VectorXd> values_;
};

Decomposition::Decomposition(const ConstantMatrix& matrix, double* space)
    : left_(space, matrix.rows(), matrix.rows()),
      right_(space + matrix.size(), matrix.rows(), matrix.rows()),
      first_(space + 2 * matrix.size(), matrix.rows(), matrix.rows()),
      second_(space + 3 * matrix.size(), matrix.rows(), matrix.rows()),
      values_(space + 4 * matrix.size(), matrix.rows()) {
  const int64_t rank = rotate(matrix);
  sort(rank);
  const double least = static_cast<double>(matrix.rows()) * kRounding * values_(0);
  int64_t above = 0;
  while (above < rank && values_(above) > least) ++above;
  complete(above);
}

int64_t Decomposition::rotate(const ConstantMatrix& matrix) {
  const int64_t n = matrix.rows();
  first_ = matrix;
  Reference place(first_);
  const Eigen::ColPivHouseholderQR<Reference> qr(place);
  const double least = static_cast<double>(n) * kRounding * std::abs(first_(0, 0));
  int64_t rank = 0;
  while (rank < n && std::abs(first_(rank, rank)) > least) ++rank;
  right_.leftCols(rank).setZero();
  for (int64_t i = 0; i < rank; ++i)
    for (int64_t c = i; c < n; ++c) right_(qr.colsPermutation().indices()(c), i) = first_(i, c);
  left_.setIdentity();
  orthogonalise(right_.leftCols(rank), left_.topLeftCorner(rank, rank), values_.data());
  left_.applyOnTheLeft(qr.householderQ());
  for (int64_t i = 0; i < rank; ++i) values_(i) = right_.col(i).norm();
  return rank;
}

void Decomposition::sort(int64_t rank) {
  for (int64_t i = 0; i < rank; ++i) {
    Eigen::Index largest = 0;
    values_.segment(i, rank - i).maxCoeff(&largest);
    if (largest == 0) continue;
    std::swap(values_(i), values_(i + largest));
    left_.col(i).swap(left_.col(i + largest));
    right_.col(i).swap(right_.col(i + largest));
  }
}

// The first `rank` columns on the right over their lengths, and others orthogonal to them.
void Decomposition::complete(int64_t rank) {
  const int64_t rest = values_.size() - rank;
  for (int64_t i = 0; i < rank; ++i) right_.col(i) /= values_(i);
  values_.tail(rest).setZero();
  if (rest == 0) return;
  first_.leftCols(rank) = right_.leftCols(rank);
  Reference place(first_.leftCols(rank));
  const Eigen::HouseholderQR<Reference> qr(place);
  second_.setIdentity();
  second_.applyOnTheLeft(qr.householderQ());
  right_.rightCols(rest) = second_.rightCols(rest);
}

}  // namespace

void find_singular_values(int64_t n, const double* matrix, double* space) {
  Decomposition(ConstantMatrix(matrix, n, n), space);
}

}  // namespace attn_dense
