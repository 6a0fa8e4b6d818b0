// Right-looking Cholesky factorisation and two triangular solves; see normal.h. Sums have a fixed
// order, so that results have the same bits on every platform.
#include "tasks/shortcuts/normal.h"

#include <cmath>
#include <utility>

namespace attn {

template <class Answer>
void NormalEquations::add(const std::vector<double>& x, size_t rows, const Answer& answer) {
  for (size_t i = 0; i < size_; i++) {
    double* row = &a_[i * size_];
    for (size_t e = 0; e < rows; e++) {
      const double* other = &x[e * size_];
      const double xi = other[i];
      if (xi == 0) continue;  // most features of a text are absent from most examples
      for (size_t j = 0; j <= i; j++) row[j] += xi * other[j];
      answer(&b_[i * outputs_], e, xi);
    }
  }
}

void NormalEquations::add_block(const std::vector<double>& x, const std::vector<size_t>& labels) {
  add(x, labels.size(), [&](double* b, size_t e, double xi) { b[labels[e]] += xi; });
}

void NormalEquations::add_block(const std::vector<double>& x, const std::vector<double>& wanted) {
  add(x, wanted.size(), [&](double* b, size_t e, double xi) { b[0] += wanted[e] * xi; });
}

std::vector<double> NormalEquations::solve(double ridge) {
  for (size_t i = 0; i < size_; i++) a_[i * size_ + i] += ridge;
  for (size_t j = 0; j < size_; j++) factor_column(j);
  for (size_t i = 0; i < size_; i++) {  // L·y = b
    for (size_t j = 0; j < i; j++) subtract(i, j, a_[i * size_ + j]);
    divide(i);
  }
  for (size_t i = size_; i-- > 0;) {  // Lᵀ·x = y
    divide(i);
    for (size_t j = 0; j < i; j++) subtract(j, i, a_[i * size_ + j]);
  }
  return std::move(b_);
}

// Scales column j, then takes its outer product off the rows below.
void NormalEquations::factor_column(size_t j) {
  const double pivot = std::sqrt(a_[j * size_ + j]);
  a_[j * size_ + j] = pivot;
  std::vector<double> column(size_);
  for (size_t i = j + 1; i < size_; i++) column[i] = a_[i * size_ + j] /= pivot;
  for (size_t i = j + 1; i < size_; i++) {
    const double scale = column[i];
    if (scale == 0) continue;
    double* row = &a_[i * size_];
    for (size_t k = j + 1; k <= i; k++) row[k] -= scale * column[k];
  }
}

void NormalEquations::subtract(size_t i, size_t j, double scale) {
  for (size_t k = 0; k < outputs_; k++) b_[i * outputs_ + k] -= scale * b_[j * outputs_ + k];
}

void NormalEquations::divide(size_t i) {
  for (size_t k = 0; k < outputs_; k++) b_[i * outputs_ + k] /= a_[i * size_ + i];
}

}  // namespace attn
