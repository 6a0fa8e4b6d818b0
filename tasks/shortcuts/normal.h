// Normal equations A·x = b with a symmetric positive definite A and several right-hand sides, built
// up from examples and solved by Cholesky's factorisation in double. O(examples·size² + size³).
#pragma once

#include <cstddef>
#include <vector>

namespace attn {

class NormalEquations {
 public:
  NormalEquations(size_t size, size_t outputs)
      : size_(size), outputs_(outputs), a_(size * size, 0.0), b_(size * outputs, 0.0) {}

  // A += xᵀ·x and b[:, label] += x for a block of examples: x is [labels.size(), size]. Blocks of
  // 32 or so rows keep one row of A in cache while all of them are added to it.
  void add_block(const std::vector<double>& x, const std::vector<size_t>& labels);
  // The same with a number to predict an example: b[:, 0] += wanted·x.
  void add_block(const std::vector<double>& x, const std::vector<double>& wanted);
  // Adds `ridge` to A's diagonal; overwrites A; returns x as [size, outputs].
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
