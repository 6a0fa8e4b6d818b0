// Feature maps on rows: 2·m·d FLOPs a row for the projection on m directions, then one pass over m
// numbers. The op has one task for each block of rows and saves only φ.
#include "variants/features/feature_maps.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/feature_rows.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// Loops on plain pointers and values: through captured references they do not vectorise.
void add_elu_gradient(const real* phi, const real* from, real* to, int64_t size) {
  for (int64_t i = 0; i < size; ++i) to[i] += from[i] * (phi[i] < 1 ? phi[i] : real(1));
}

void relu_plus(const real* x, real* to, int64_t size, real floor) {
  ATTN_INDEPENDENT
  for (int64_t i = 0; i < size; ++i) to[i] = (x[i] < 0 ? real(0) : x[i]) + floor;
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

}  // namespace

FeatureMap elu_plus_one() { return {.kind = FeatureMap::Kind::elu}; }

FeatureMap positive_random(const Tensor& omega, double scale) {
  return {.kind = FeatureMap::Kind::positive, .omega = omega, .number = real(scale)};
}

FeatureMap relu_random(const Tensor& omega, double epsilon) {
  return {.kind = FeatureMap::Kind::relu, .omega = omega, .number = real(epsilon)};
}

FeatureMap relu_plain(double epsilon) { return relu_random({}, epsilon); }

void FeatureMap::check_fits(const Shape& x) const {
  ATTN_CHECK(!omega.defined() || (omega.shape().rank() == 3 && omega.dim(2) == x[3] &&
                                  (omega.dim(0) == 1 || omega.dim(0) == x[1])),
             "directions {} do not fit {}", omega.shape().str(), x.str());
}

int64_t RowFeatures::panel_reals(const FeatureMap& map) {
  return map.omega.defined() ? packed_reals(map.omega.dim(1), map.omega.dim(2)) : 0;
}

RowFeatures::RowFeatures(const FeatureMap& map, int64_t dim, int64_t head, real* panels)
    : kind_(map.kind),
      number_(map.number),
      dim_(dim),
      features_(map.features(dim)),
      panels_(panels) {
  if (!map.omega.defined()) return;
  const Mark mark(Part::features);
  omega_ = map.omega.data() + (map.omega.dim(0) == 1 ? 0 : head) * features_ * dim_;
  pack_transposed(omega_, features_, dim_, dim_, panels);
}

void RowFeatures::make(const real* x, int64_t rows, real* phi, int64_t phi_row,
                       real* log_scale) const {
  const Mark mark(Part::features);
  if (omega_) {
    product(rows, features_, dim_, {x, dim_}, packed(panels_, dim_), phi, phi_row);
    count_flops(2 * static_cast<double>(rows * features_ * dim_));
  }
  if (kind_ == FeatureMap::Kind::elu && phi_row == dim_)
    elu_plus_one_row(rows * dim_, x, phi);
  else if (kind_ == FeatureMap::Kind::elu)
    for (int64_t i = 0; i < rows; ++i) elu_plus_one_row(dim_, x + i * dim_, phi + i * phi_row);
  if (kind_ == FeatureMap::Kind::relu)
    for (int64_t i = 0; i < rows; ++i)
      relu_plus(omega_ ? phi + i * phi_row : x + i * dim_, phi + i * phi_row, features_, number_);
  if (kind_ == FeatureMap::Kind::positive) exponentials(x, rows, phi, phi_row, log_scale);
}

void RowFeatures::exponentials(const real* x, int64_t rows, real* phi, int64_t phi_row,
                               real* log_scale) const {
  constexpr int64_t kBlock = 64;
  real row_max[kBlock];
  for (int64_t first = 0; first < rows; first += kBlock) {
    const int64_t count = std::min(kBlock, rows - first);
    exp_rows(count, features_, phi + first * phi_row, phi_row, number_, row_max);
    for (int64_t i = 0; log_scale && i < count; ++i) {
      const real* const row = x + (first + i) * dim_;
      log_scale[first + i] = number_ * row_max[i] - number_ * number_ * row_dot(row, row, dim_) / 2;
    }
  }
}

void RowFeatures::add_gradient(const real* x, const real* phi, int64_t rows, real* grad_phi,
                               int64_t phi_row, real* grad_x) const {
  const Mark mark(Part::features);
  for (int64_t i = 0; i < rows; ++i) {
    const real* const made = phi + i * phi_row;
    real *const grad_row = grad_phi + i * phi_row, *const to = grad_x + i * dim_;
    if (kind_ == FeatureMap::Kind::elu) add_elu_gradient(made, grad_row, to, dim_);
    if (kind_ == FeatureMap::Kind::relu) select_above(made, grad_row, features_, number_);
    if (kind_ == FeatureMap::Kind::relu && !omega_) add_multiple(grad_row, to, dim_, 1);
    if (kind_ == FeatureMap::Kind::positive)
      add_multiple(x + i * dim_, to, dim_,
                   -number_ * multiply_and_sum(made, grad_row, features_, number_));
  }
  if (!omega_) return;
  add_product(rows, dim_, features_, {grad_phi, phi_row}, {omega_, dim_}, grad_x, dim_);
  count_flops(2 * static_cast<double>(rows * features_ * dim_));
}

namespace {

constexpr int64_t kRows = 256;  // of a task

struct Rows {
  int64_t head = 0;   // batch·heads + head
  int64_t at = 0;     // first row, counted over all heads
  int64_t count = 0;  // valid ones; those of the block behind them are padding
  int64_t padded = 0;
};

// body(rows, the map on them, workspace) over blocks of rows of x = [batch, heads, len, dim].
template <class Body>
void for_rows(const Tensor& x, const FeatureMap& map, Lengths lengths, int64_t reals,
              const Body& body) {
  const int64_t heads = x.dim(1), len = x.dim(2), blocks = (len + kRows - 1) / kRows;
  const int64_t panels = padded_reals(RowFeatures::panel_reals(map));
  run_tasks(x.dim(0) * heads * blocks, panels + reals, [&](int64_t task, real* work) {
    const int64_t head = task / blocks, first = task % blocks * kRows,
                  last = std::min(len, first + kRows);
    const int64_t valid = lengths.empty() ? len : lengths[static_cast<size_t>(head / heads)];
    const int64_t count = std::clamp<int64_t>(valid - first, 0, last - first);
    body(Rows{head, head * len + first, count, last - first - count},
         RowFeatures(map, x.dim(3), head % heads, work), work + panels);
  });
}

}  // namespace

Features features(const Var& x, const FeatureMap& map, Lengths lengths) {
  ATTN_CHECK(map.kind != FeatureMap::Kind::given, "features of {} are given already",
             x.shape().str());
  map.check_fits(x.shape());
  const Tensor xt = x.value();
  const int64_t d = xt.dim(3), m = map.features(d);
  const Tensor phi(xt.shape().with(3, m));
  const Tensor log_scale =
      map.has_log_scale() ? Tensor({xt.dim(0), xt.dim(1), xt.dim(2)}) : Tensor();
  for_rows(xt, map, lengths, 0, [&](const Rows& r, const RowFeatures& rows, real*) {
    real* const scales = log_scale.defined() ? log_scale.data() + r.at : nullptr;
    rows.make(xt.data() + r.at * d, r.count, phi.data() + r.at * m, m, scales);
    std::fill_n(phi.data() + (r.at + r.count) * m, r.padded * m, real(0));
    if (scales) std::fill_n(scales + r.count, r.padded, -kInfinity);
  });
  if (!recording({x})) return {Var(phi), log_scale};
  const std::vector<int64_t> kept(lengths.begin(), lengths.end());
  return {custom_op(phi, {x},
                    [xt, phi, map, kept, d, m](const Tensor& grad, std::span<Tensor> grads) {
                      for_rows(xt, map, kept, kRows * m,
                               [&](const Rows& r, const RowFeatures& rows, real* grad_phi) {
                                 std::copy_n(grad.data() + r.at * m, r.count * m, grad_phi);
                                 rows.add_gradient(xt.data() + r.at * d, phi.data() + r.at * m,
                                                   r.count, grad_phi, m,
                                                   grads[0].data() + r.at * d);
                               });
                    }),
          log_scale};
}

}  // namespace attn
