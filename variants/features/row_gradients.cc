// Gradients of feature maps on rows: from dφ to the gradient of the projections, in place, then
// through the directions. 2·directions·dim FLOPs a row, and as many for learned directions.
#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/simd/feature_rows.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/features/row_features.h"

namespace attn {
namespace {

constexpr int64_t kGradientBlock = 64;  // rows at a time

// Loops on plain pointers and values: through captured references they do not vectorise.
void add_elu_gradient(const real* phi, const real* from, real* to, int64_t size) {
  for (int64_t i = 0; i < size; ++i) to[i] += from[i] * (phi[i] < 1 ? phi[i] : real(1));
}

void select_above(const real* x, real* out, int64_t size, real floor) {
  for (int64_t i = 0; i < size; ++i) out[i] = x[i] > floor ? out[i] : real(0);
}

// out *= factor·x, and the sum of the result is returned.
real multiply_and_sum(const real* x, real* out, int64_t size, real factor) {
  for (int64_t i = 0; i < size; ++i) out[i] *= factor * x[i];
  return sum_in_row(out, size);
}

void add_multiple(const real* x, real* out, int64_t size, real factor) {
  for (int64_t i = 0; i < size; ++i) out[i] += factor * x[i];
}

void add_relu_at_angle(const real* x, const real* grad, int64_t size, real cosine, real sine,
                       real* to) {
  const real* const below = grad + size;
  for (int64_t i = 0; i < size; ++i)
    to[i] += x[i] > 0 ? cosine * grad[i] + sine * below[i] : real(0);
}

// phi = [sin, cos]: the gradient of the angles, in the first half of grad.
void turn(const real* phi, int64_t size, real factor, real* grad) {
  for (int64_t i = 0; i < size; ++i)
    grad[i] = factor * (phi[size + i] * grad[i] - phi[i] * grad[size + i]);
}

// phi = [softmax(y), softmax(-y)]: the gradient of y, in the first half of grad.
void through_softmaxes(const real* phi, int64_t size, real up_mean, real down_mean, real* grad) {
  for (int64_t i = 0; i < size; ++i)
    grad[i] = phi[i] * (grad[i] - up_mean) - phi[size + i] * (grad[size + i] - down_mean);
}

}  // namespace

int64_t RowFeatures::scratch_reals(const FeatureMap& map, int64_t dim) {
  return map.unit_rows ? kGradientBlock * dim : 0;
}

void RowFeatures::add_gradient(const Gradient& g) const {
  const Mark mark(Part::features);
  using Kind = FeatureMap::Kind;
  const real number = real(number_);
  if (kind_ == Kind::taylor)
    pair_gradient_rows(g.rows, directions_, polynomial_scale(), g.phi, g.grad_phi, g.phi_row);
  for (int64_t i = 0; i < g.rows; ++i) {
    const real *const made = g.phi + i * g.phi_row, *const x = g.x + i * dim_;
    real *const grad = g.grad_phi + i * g.phi_row, *const to =
                                                       g.grad_x ? g.grad_x + i * dim_ : nullptr;
    if (kind_ == Kind::elu && to) add_elu_gradient(made, grad, to, dim_);
    if (kind_ == Kind::relu) select_above(made, grad, features_, number);
    if (kind_ == Kind::relu && !omega_ && to) add_multiple(grad, to, dim_, 1);
    if (kind_ == Kind::positive) {
      const real sum = multiply_and_sum(made, grad, features_, number);
      if (to) add_multiple(x, to, dim_, -number * sum);
    }
    if (kind_ == Kind::waves) {
      if (to && !unit_rows_ && side_ == Side::keys)
        add_multiple(x, to, dim_,
                     number * number *
                         (row_dot(made, grad, features_) +
                          (g.grad_log_scale ? g.grad_log_scale[i] : real(0))));
      turn(made, directions_, unit_rows_ ? real(1) : number, grad);
    }
    if (kind_ == Kind::cosine && to) {
      const double angle = number_ * static_cast<double>(g.first + i);
      add_relu_at_angle(x, grad, dim_, real(std::cos(angle)), real(std::sin(angle)), to);
    }
    if (kind_ == Kind::softmax_pair)
      through_softmaxes(made, directions_, row_dot(made, grad, directions_),
                        row_dot(made + directions_, grad + directions_, directions_), grad);
  }
  if (omega_ && unit_rows_) return project_unit_gradient(g);
  if (omega_) project_gradient(g);
}

void RowFeatures::project_gradient(const Gradient& g) const {
  if (g.grad_x) {
    add_product(g.rows, dim_, directions_, {g.grad_phi, g.phi_row}, {omega_, dim_}, g.grad_x, dim_);
    count_flops(2 * static_cast<double>(g.rows * directions_ * dim_));
  }
  if (g.grad_omega) {
    add_product(directions_, dim_, g.rows, {g.grad_phi, 1, g.phi_row}, {g.x, dim_}, g.grad_omega,
                dim_);
    count_flops(2 * static_cast<double>(g.rows * directions_ * dim_));
  }
}

// With x̂ = r·x and r = 1/√(|x|² + epsilon): dx = r·(t - x̂·(x̂·t)) for the gradient t of x̂.
void RowFeatures::project_unit_gradient(const Gradient& all) const {
  for (int64_t first = 0; first < all.rows; first += kGradientBlock) {
    Gradient g = all;
    g.rows = std::min(kGradientBlock, all.rows - first);
    g.x += first * dim_;
    g.grad_phi += first * g.phi_row;
    real inverse_squares[kGradientBlock];
    for (int64_t i = 0; i < g.rows; ++i) {
      const real* const x = g.x + i * dim_;
      inverse_squares[i] = 1 / (row_dot(x, x, dim_) + real(kRowEpsilon));
      const real factor = std::sqrt(inverse_squares[i]);
      real* const grad = g.grad_phi + i * g.phi_row;
      for (int64_t f = 0; f < directions_; ++f) grad[f] *= factor;
    }
    g.grad_x = all.grad_x ? g.scratch : nullptr;
    if (g.grad_x) std::fill_n(g.scratch, g.rows * dim_, real(0));
    project_gradient(g);
    for (int64_t i = 0; all.grad_x && i < g.rows; ++i) {
      const real *const x = g.x + i * dim_, *const t = g.scratch + i * dim_;
      real* const to = all.grad_x + (first + i) * dim_;
      add_multiple(t, to, dim_, 1);
      add_multiple(x, to, dim_, -inverse_squares[i] * row_dot(x, t, dim_));
    }
  }
}

}  // namespace attn
