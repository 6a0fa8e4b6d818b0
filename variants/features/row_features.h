// The feature map of one head on rows x [rows, dim], as kernels call it chunk by chunk.
// 2·directions ·dim FLOPs a row for the projection, then one pass over the features.
#pragma once

#include <cstdint>

#include "core/base/real.h"
#include "variants/features/feature_maps.h"

namespace attn {

// Added to the square of the length of a unit row: the square of the 1e-3 of RFA's authors.
inline constexpr double kRowEpsilon = 1e-6;

class RowFeatures {
 public:
  enum class Side : uint8_t { queries, keys };

  // Packs the directions into `panels`, which has panel_reals() numbers and must outlive the
  // object. Not for Kind::given.
  RowFeatures(const FeatureMap& map, int64_t dim, int64_t head, real* panels,
              Side side = Side::queries);
  static int64_t panel_reals(const FeatureMap& map);  // of one side
  // Those of keys; `panels` is used where keys have directions of their own.
  RowFeatures of_keys(const FeatureMap& map, int64_t head, real* panels) const;

  // Writes phi [rows, features], rows phi_row apart, and, unless null, log_scale [rows], if the map
  // has one. `first` is the position of the first row among the keys.
  void make(const real* x, int64_t first, int64_t rows, real* phi, int64_t phi_row,
            real* log_scale = nullptr) const;

  struct Gradient {
    const real* x;    // [rows, dim]
    const real* phi;  // as made
    int64_t first, rows;
    real* grad_phi;  // in the layout of phi; overwritten
    int64_t phi_row;
    real* grad_x;      // is added to; null: not asked for
    real* grad_omega;  // [directions, dim], is added to; null: not asked for
    real* scratch;     // [scratch_reals]
    const real* grad_log_scale =
        nullptr;  // [rows], of trigonometric keys, beside phi·grad_phi; or null
  };
  static int64_t scratch_reals(const FeatureMap& map, int64_t dim);
  // The divisor of a row is treated as a constant, since attention multiplies by it again; but that
  // of trigonometric keys is a part of their weights, and its gradient reaches grad_x.
  void add_gradient(const Gradient& g) const;

 private:
  void exponentials(const real* x, int64_t rows, real* phi, int64_t phi_row, real* log_scale) const;
  void waves(const real* x, int64_t rows, real* phi, int64_t phi_row, real* log_scale) const;
  void cosines(const real* x, int64_t first, int64_t rows, real* phi, int64_t phi_row) const;
  real polynomial_scale() const;
  void project_gradient(const Gradient& g) const;
  void project_unit_gradient(const Gradient& g) const;

  FeatureMap::Kind kind_;
  Side side_;
  bool unit_rows_;
  double number_;
  int64_t dim_, directions_, features_;
  const real* omega_ = nullptr;  // [directions, dim] of this head
  const real* panels_;           // the same as a right operand [dim, directions]
};

}  // namespace attn
