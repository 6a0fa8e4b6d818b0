// Feature maps on rows: a product with the packed directions, then one pass over the features.
#include "variants/features/row_features.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/simd/feature_rows.h"
#include "core/simd/paired_rows.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

constexpr int64_t kFeatureBlock = 64;  // rows at a time

// Loops on plain pointers and values: through captured references they do not vectorise.
void relu_plus(const real* x, real* to, int64_t size, real floor) {
  ATTN_INDEPENDENT
  for (int64_t i = 0; i < size; ++i) to[i] = (x[i] < 0 ? real(0) : x[i]) + floor;
}

void relu_at_angle(const real* x, int64_t size, real cosine, real sine, real* to) {
  real* const below = to + size;
  ATTN_INDEPENDENT
  for (int64_t i = 0; i < size; ++i) {
    const real value = x[i] < 0 ? real(0) : x[i];
    to[i] = cosine * value;
    below[i] = sine * value;
  }
}

}  // namespace

int64_t RowFeatures::panel_reals(const FeatureMap& map) {
  return map.omega.defined() ? packed_reals(map.omega.dim(1), map.omega.dim(2)) : 0;
}

RowFeatures::RowFeatures(const FeatureMap& map, int64_t dim, int64_t head, real* panels, Side side)
    : kind_(map.kind),
      side_(side),
      unit_rows_(map.unit_rows),
      number_(map.number),
      dim_(dim),
      directions_(map.directions(dim)),
      features_(map.features(dim)),
      panels_(panels) {
  const Var& omega = side == Side::keys && map.key_omega.defined() ? map.key_omega : map.omega;
  if (!omega.defined()) return;
  const Mark mark(Part::features);
  omega_ = omega.value().data() + (omega.dim(0) == 1 ? 0 : head) * directions_ * dim_;
  pack_transposed(omega_, directions_, dim_, dim_, panels);
}

RowFeatures RowFeatures::of_keys(const FeatureMap& map, int64_t head, real* panels) const {
  if (map.key_omega.defined()) return RowFeatures(map, dim_, head, panels, Side::keys);
  RowFeatures keys = *this;
  keys.side_ = Side::keys;
  return keys;
}

void RowFeatures::make(const real* x, int64_t first, int64_t rows, real* phi, int64_t phi_row,
                       real* log_scale) const {
  const Mark mark(Part::features);
  using Kind = FeatureMap::Kind;
  if (omega_) {  // the terms of first order of a polynomial follow its constant
    product(rows, directions_, dim_, {x, dim_}, packed(panels_, dim_),
            kind_ == Kind::taylor ? phi + 1 : phi, phi_row);
    count_flops(2 * static_cast<double>(rows * directions_ * dim_));
  }
  if (kind_ == Kind::elu && phi_row == dim_)
    elu_plus_one_row(rows * dim_, x, phi);
  else if (kind_ == Kind::elu)
    for (int64_t i = 0; i < rows; ++i) elu_plus_one_row(dim_, x + i * dim_, phi + i * phi_row);
  if (kind_ == Kind::relu)
    for (int64_t i = 0; i < rows; ++i)
      relu_plus(omega_ ? phi + i * phi_row : x + i * dim_, phi + i * phi_row, features_,
                real(number_));
  if (kind_ == Kind::positive) exponentials(x, rows, phi, phi_row, log_scale);
  if (kind_ == Kind::waves) waves(x, rows, phi, phi_row, log_scale);
  if (kind_ == Kind::cosine) cosines(x, first, rows, phi, phi_row);
  if (kind_ == Kind::taylor) pair_rows(rows, directions_, polynomial_scale(), phi, phi_row);
  if (kind_ == Kind::softmax_pair) softmax_pair_rows(rows, directions_, phi, phi_row);
}

void RowFeatures::exponentials(const real* x, int64_t rows, real* phi, int64_t phi_row,
                               real* log_scale) const {
  const real number = real(number_);
  real row_max[kFeatureBlock];
  for (int64_t first = 0; first < rows; first += kFeatureBlock) {
    const int64_t count = std::min(kFeatureBlock, rows - first);
    exp_rows(count, features_, phi + first * phi_row, phi_row, number, row_max);
    for (int64_t i = 0; log_scale && i < count; ++i) {
      const real* const row = x + (first + i) * dim_;
      log_scale[first + i] = number * row_max[i] - number * number * row_dot(row, row, dim_) / 2;
    }
  }
}

void RowFeatures::waves(const real* x, int64_t rows, real* phi, int64_t phi_row,
                        real* log_scale) const {
  const real number = real(number_);
  const real amplitude = real(1 / std::sqrt(static_cast<double>(directions_)));
  real factors[kFeatureBlock];
  for (int64_t first = 0; first < rows; first += kFeatureBlock) {
    const int64_t count = std::min(kFeatureBlock, rows - first);
    for (int64_t i = 0; i < count; ++i) {
      const real* const row = x + (first + i) * dim_;
      const real square = unit_rows_ || log_scale ? row_dot(row, row, dim_) : real(0);
      factors[i] = unit_rows_ ? 1 / std::sqrt(square + real(kRowEpsilon)) : number;
      if (log_scale && !unit_rows_) log_scale[first + i] = number * number * square / 2;
    }
    sin_cos_rows(count, directions_, phi + first * phi_row, phi_row, factors, amplitude);
  }
}

// The angle of the first row is exact; those of the next follow by turning, in double.
void RowFeatures::cosines(const real* x, int64_t first, int64_t rows, real* phi,
                          int64_t phi_row) const {
  const double turn_cosine = std::cos(number_), turn_sine = std::sin(number_);
  double cosine = std::cos(number_ * static_cast<double>(first)),
         sine = std::sin(number_ * static_cast<double>(first));
  for (int64_t i = 0; i < rows; ++i) {
    relu_at_angle(x + i * dim_, dim_, real(cosine), real(sine), phi + i * phi_row);
    const double before = cosine;
    cosine = before * turn_cosine - sine * turn_sine;
    sine = sine * turn_cosine + before * turn_sine;
  }
}

// So that products of two rows of pairs are those of s = y·y'/√f.
real RowFeatures::polynomial_scale() const {
  return real(std::pow(static_cast<double>(directions_), -0.25));
}

}  // namespace attn
