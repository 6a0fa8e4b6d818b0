// Feature maps φ of kernel attention, row by row, and the random directions they project on. A
// kernel makes the rows of one chunk in its workspace (RowFeatures); features() makes them all.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "core/base/rng.h"

namespace attn {

using Lengths = std::span<const int64_t>;  // valid rows of each batch entry; empty: all

struct FeatureMap {
  enum class Kind { given, elu, positive, relu };
  Kind kind = Kind::given;  // the rows are features already
  Tensor omega = {};  // [heads or 1, features, dim]: directions, of positive and, if any, relu
  real number = 0;    // scale of positive, epsilon of relu

  int64_t features(int64_t dim) const { return omega.defined() ? omega.dim(1) : dim; }
  bool divides() const { return kind == Kind::positive; }  // and says by what, in log_scale
  void check_fits(const Shape& x) const;                   // [batch, heads, len, dim], or an Error
};

// φ(x) = elu(x) + 1, written without the cancellation: x + 1 above 0, e^x below. Katharopoulos et
// al. 2020, eq. 7.
FeatureMap elu_plus_one();

// φ(x) = exp(scale·ωx - |scale·x|²/2), whose products estimate exp(scale²·x·y) without bias up to
// the factor `features`, which cancels in attention. Choromanski et al. 2021 (arXiv:2009.14794),
// eq. 7. Each row is divided by its own largest entry, so it neither overflows nor depends on
// another row; log_scale says by how much.
FeatureMap positive_random(const Tensor& omega, double scale);

// φ(x) = relu(ωx) + epsilon: the generalised kernel of the same paper, section 2.2.
FeatureMap relu_random(const Tensor& omega, double epsilon);
FeatureMap relu_plain(double epsilon);  // relu(x) + epsilon: x in the place of ωx

// The map on rows x [rows, dim] of one head, its directions packed into `panels`, which holds
// panel_reals(map) numbers and outlives this. Not for maps that are given.
class RowFeatures {
 public:
  RowFeatures(const FeatureMap& map, int64_t dim, int64_t head, real* panels);
  static int64_t panel_reals(const FeatureMap& map);

  // phi [rows, features], rows phi_row apart; log_scale [rows], if wanted, where the map divides.
  void make(const real* x, int64_t rows, real* phi, int64_t phi_row,
            real* log_scale = nullptr) const;
  // Adds to grad_x [rows, dim]; overwrites grad_phi, laid out as phi. What was divided out is a
  // constant here: what it multiplies, the attention multiplies back.
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

// All rows of x [batch, heads, len, dim] at once, as an op. Rows of padded keys become zeros by
// selection, after the map: whatever they held reaches neither a sum nor a gradient.
struct Features {
  Var phi;           // [batch, heads, len, features]
  Tensor log_scale;  // [batch, heads, len], -inf for padding; undefined unless the map divides
};
Features features(const Var& x, const FeatureMap& map, Lengths lengths = {});

// [heads, count, dim]: rows of N(0, 1) entries, independent; or orthogonal within blocks of `dim`
// rows, each block Haar distributed, with the lengths that independent rows would have.
Tensor random_directions(int64_t heads, int64_t count, int64_t dim, bool orthogonal, Rng rng);

}  // namespace attn
