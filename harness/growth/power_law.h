// y = c·n^p fitted to points by least squares on logarithms, with Student's t intervals, a test of
// curvature, and predictions. O(points).
#pragma once

#include <optional>
#include <vector>

namespace attn {

struct LengthPoint {
  double length = 0, value = 0;  // both above 0
};

class PowerLaw {
 public:
  // Error unless there are three points or more, of two lengths or more, all above 0.
  explicit PowerLaw(const std::vector<LengthPoint>& points);

  double exponent() const { return slope_; }
  double exponent_reach() const;  // half of its 95 % interval
  double constant() const;        // value at length 1
  // The probability of a curve as strong as the fitted one, in logarithms, where there is none: of
  // the quadratic term. nullopt: fewer than three lengths or four points.
  std::optional<double> curvature_p() const { return curvature_p_; }

  struct Prediction {
    double value = 0, low = 0, high = 0;
  };
  // Of a new value at `length`, with its 95 % interval, where the law holds as far as there.
  Prediction at(double length) const;

 private:
  double count_ = 0, mean_x_ = 0, mean_y_ = 0, spread_ = 0;  // spread: sum of (x - mean_x)²
  double slope_ = 0, deviation_ = 0;                         // of the residuals
  std::optional<double> curvature_p_;
};

}  // namespace attn
