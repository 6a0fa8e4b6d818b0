// Normal equations A·x = b with a symmetric positive definite A and several right-hand sides. Sums
// over examples build them; a Cholesky factorisation in double solves them.
// O(examples·size² + size³).
#pragma once

#include <cstddef>
#include <vector>

namespace attn {

class NormalEquations {
 public:
  NormalEquations(size_t size, size_t outputs)
      : size_(size), outputs_(outputs), a_(size * size, 0.0), b_(size * outputs, 0.0) {}

  // A += xᵀ·x and b[:, label] += x for a block of examples, x [labels.size(), size]. In blocks of
  // about 32 examples, one row of A stays in cache while all examples are added to it.
  void add_block(const std::vector<double>& x, const std::vector<size_t>& labels);
  // The same with one number to predict per example: b[:, 0] += wanted·x.
  void add_block(const std::vector<double>& x, const std::vector<double>& wanted);
  // Adds `ridge` to the diagonal of A and returns x [size, outputs]. Overwrites A and b.
  std::vector<double> solve(double ridge);

  size_t size() const { return size_; }
  size_t outputs() const { return outputs_; }
  std::vector<double>& a() { return a_; }  // [size, size], the lower triangle
  std::vector<double>& b() { return b_; }  // [size, outputs]

 private:
  template <class Answer>
  void add(const std::vector<double>& x, size_t rows, const Answer& answer);
  void factor_column(size_t j);
  void subtract(size_t i, size_t j, double scale);
  void divide(size_t i);

  size_t size_, outputs_;
  std::vector<double> a_, b_;
};

}  // namespace attn
