// Feature maps φ of linear attention, and the random directions of their projections. A kernel
// computes the features of one chunk in its workspace (RowFeatures); features() computes all of
// them.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "core/base/rng.h"

namespace attn {

using Lengths = std::span<const int64_t>;  // valid rows of each batch entry; empty: all

struct FeatureMap {
  enum class Kind { given, elu, positive, relu };
  Kind kind = Kind::given;  // given: the rows are features already
  Tensor omega = {};        // directions [heads or 1, features, dim]; undefined: no projection
  real number = 0;          // the scale of positive, the epsilon of relu

  int64_t features(int64_t dim) const { return omega.defined() ? omega.dim(1) : dim; }
  bool has_log_scale() const { return kind == Kind::positive; }  // each row is divided by a scale
  void check_fits(const Shape& x) const;  // Error unless it fits x [batch, heads, len, dim]
};

// φ(x) = elu(x) + 1, computed without cancellation: x + 1 for x > 0, else e^x. Katharopoulos et
// al. 2020, eq. 7.
FeatureMap elu_plus_one();

// φ(x) = exp(scale·ωx - |scale·x|²/2). φ(x)·φ(y) is an unbiased estimate of exp(scale²·x·y) times
// the number of features; that factor cancels in attention. Choromanski et al. 2021
// (arXiv:2009.14794), eq. 7. Each row is divided by its largest entry, so that it cannot overflow
// and does not depend on other rows; log_scale is the logarithm of that entry.
FeatureMap positive_random(const Tensor& omega, double scale);

// φ(x) = relu(ωx) + epsilon, the generalised kernel of the same paper, section 2.2.
FeatureMap relu_random(const Tensor& omega, double epsilon);
FeatureMap relu_plain(double epsilon);  // relu(x) + epsilon, without projection

// The feature map of one head on rows x [rows, dim]. The constructor packs the directions into
// `panels`, which has panel_reals(map) numbers and must outlive the object. Not for Kind::given.
class RowFeatures {
 public:
  RowFeatures(const FeatureMap& map, int64_t dim, int64_t head, real* panels);
  static int64_t panel_reals(const FeatureMap& map);

  // Writes phi [rows, features], rows phi_row apart, and, unless null, log_scale [rows], if the map
  // has one.
  void make(const real* x, int64_t rows, real* phi, int64_t phi_row,
            real* log_scale = nullptr) const;
  // Adds to grad_x [rows, dim]; overwrites grad_phi, whose layout is that of phi. The divisor of a
  // row is treated as a constant, since attention multiplies by it again.
  void add_gradient(const real* x, const real* phi, int64_t rows, real* grad_phi, int64_t phi_row,
                    real* grad_x) const;

 private:
  void exponentials(const real* x, int64_t rows, real* phi, int64_t phi_row, real* log_scale) const;

  FeatureMap::Kind kind_;
  real number_;
  int64_t dim_, features_;
  const real* omega_ = nullptr;  // [features, dim] of this head
  const real* panels_;           // the same as a right operand [dim, features]
};

// The features of all rows of x [batch, heads, len, dim], as an op. Rows of padding become zeros by
// selection, so that their values, even NaN, reach neither a sum nor a gradient.
struct Features {
  Var phi;           // [batch, heads, len, features]
  Tensor log_scale;  // [batch, heads, len], -inf for padding; undefined unless map.has_log_scale()
};
Features features(const Var& x, const FeatureMap& map, Lengths lengths = {});

// Random directions [heads, count, dim]: independent rows with N(0, 1) entries; or rows that are
// orthogonal within blocks of `dim` rows, each block Haar distributed, with the lengths of
// independent rows.
Tensor random_directions(int64_t heads, int64_t count, int64_t dim, bool orthogonal, Rng rng);

}  // namespace attn
