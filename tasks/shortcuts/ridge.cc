// Standardised normal equations from raw moments, with one Cholesky factorisation per penalty
// strength; see ridge.h.
#include "tasks/shortcuts/ridge.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "tasks/shortcuts/normal.h"

namespace attn {
namespace {

// Penalty strengths, in units of the variance of a standardised feature.
constexpr double kStrengths[] = {10, 1, 0.1, 0.01};

// Raw second moments of rows whose last feature is the constant 1.
class Moments {
 public:
  Moments(size_t width, size_t classes) : sums_(width + 1, classes) {}

  void add(const Rows& data, size_t begin, size_t end) {
    constexpr size_t kBlock = 32;
    const size_t size = sums_.size();
    for (; begin < end; begin += kBlock) {
      const size_t rows = std::min(kBlock, end - begin);
      std::vector<double> x(rows * size, 0.0);
      std::vector<size_t> labels;
      std::vector<double> wanted;
      for (size_t i = 0; i < rows; i++) {
        for (const auto& [index, value] : data.rows[begin + i])
          x[i * size + static_cast<size_t>(index)] = static_cast<double>(value);
        x[i * size + size - 1] = 1;
        if (data.wanted.empty())
          labels.push_back(static_cast<size_t>(data.labels[begin + i]));
        else
          wanted.push_back(static_cast<double>(data.wanted[begin + i]));
      }
      if (data.wanted.empty())
        sums_.add_block(x, labels);
      else
        sums_.add_block(x, wanted);
    }
  }

  // Weights on raw features, and the bias as the last row: [width + 1, classes]. A number to
  // predict is the one class.
  std::vector<double> fit(double strength) const {
    NormalEquations sums = sums_;
    const size_t width = sums.size() - 1, classes = sums.outputs();
    const double n = sums.a().back();
    const double* total = &sums.a()[width * (width + 1)];  // of each feature
    const double* share = &sums.b()[width * classes];      // of each class, times n
    std::vector<double> scale(width);  // one over the deviation; 0 for a constant feature
    for (size_t i = 0; i < width; i++) {
      const double square = sums.a()[i * (width + 1) + i] / n, mean = total[i] / n;
      const double variance = square - mean * mean;
      scale[i] = variance > 1e-9 * square ? 1 / std::sqrt(variance) : 0;
    }
    NormalEquations scaled(width, classes);
    for (size_t i = 0; i < width; i++) {
      for (size_t j = 0; j <= i; j++)
        scaled.a()[i * width + j] =
            scale[i] * scale[j] * (sums.a()[i * (width + 1) + j] / n - total[i] / n * total[j] / n);
      for (size_t k = 0; k < classes; k++)
        scaled.b()[i * classes + k] =
            scale[i] * (sums.b()[i * classes + k] / n - total[i] / n * share[k] / n);
    }
    std::vector<double> weights = scaled.solve(strength);
    for (size_t k = 0; k < classes; k++) {
      double bias = share[k] / n;
      for (size_t i = 0; i < width; i++) {
        weights[i * classes + k] *= scale[i];
        bias -= weights[i * classes + k] * (total[i] / n);
      }
      weights.push_back(bias);
    }
    return weights;
  }

 private:
  NormalEquations sums_;
};

double accuracy(const std::vector<double>& weights, const Rows& data, size_t begin, size_t end,
                size_t classes) {
  int64_t right = 0;
  for (size_t e = begin; e < end; e++) {
    std::vector<double> scores(weights.end() - static_cast<ptrdiff_t>(classes), weights.end());
    for (const auto& [index, value] : data.rows[e])
      for (size_t k = 0; k < classes; k++)
        scores[k] += static_cast<double>(value) * weights[static_cast<size_t>(index) * classes + k];
    right += std::max_element(scores.begin(), scores.end()) - scores.begin() == data.labels[e];
  }
  return end == begin ? 0 : static_cast<double>(right) / static_cast<double>(end - begin);
}

double squared_error(const std::vector<double>& weights, const Rows& data, size_t begin,
                     size_t end) {
  double sum = 0;
  for (size_t e = begin; e < end; e++) {
    double error = weights.back() - static_cast<double>(data.wanted[e]);
    for (const auto& [index, value] : data.rows[e])
      error += static_cast<double>(value) * weights[static_cast<size_t>(index)];
    sum += error * error;
  }
  return end == begin ? 0 : sum / static_cast<double>(end - begin);
}

}  // namespace

RidgeScore ridge_score(const Rows& train, const Rows& test, size_t width, size_t classes) {
  ATTN_CHECK(!train.rows.empty(), "a ridge regression needs training rows");
  const size_t all = train.rows.size(), fitted = fitted_part(all);
  Moments moments(width, classes);
  moments.add(train, 0, fitted);
  RidgeScore result{-1, 0};
  double chosen = 0;
  for (const double strength : kStrengths) {
    const double score = accuracy(moments.fit(strength), train, fitted, all, classes);
    if (score > result.held_out) {
      result.held_out = score;
      chosen = strength;
    }
  }
  if (test.rows.empty()) return result;
  moments.add(train, fitted, all);
  result.test = accuracy(moments.fit(chosen), test, 0, test.rows.size(), classes);
  return result;
}

double ridge_error(const Rows& train, const Rows& test, size_t width) {
  ATTN_CHECK(!train.rows.empty() && !test.rows.empty(), "a ridge regression needs rows");
  const size_t all = train.rows.size(), fitted = fitted_part(all);
  Moments moments(width, 1);
  moments.add(train, 0, fitted);
  double chosen = 0, least = 0;
  for (const double strength : kStrengths) {
    const double error = squared_error(moments.fit(strength), train, fitted, all);
    if (chosen > 0 && !(error < least)) continue;
    least = error;
    chosen = strength;
  }
  moments.add(train, fitted, all);
  return squared_error(moments.fit(chosen), test, 0, test.rows.size());
}

}  // namespace attn
