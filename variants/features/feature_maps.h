// Feature maps φ of linear attention, and the random directions of their projections. A kernel
// computes the features of one chunk in its workspace (row_features.h); features() computes all of
// them.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "core/base/rng.h"
#include "variants/features/normalizer.h"

namespace attn {

using Lengths = std::span<const int64_t>;  // valid rows of each batch entry; empty: all

struct FeatureMap {
  enum class Kind : uint8_t { given, elu, positive, relu, cosine, taylor, waves, softmax_pair };
  Kind kind = Kind::given;  // given: the rows are features already
  Var omega = {};           // [heads or 1, directions, dim]; undefined: no projection
  Var key_omega = {};       // the same of keys; undefined: omega
  // The scale of positive and waves, the epsilon of relu, the angle between neighbours of cosine.
  double number = 0;
  bool unit_rows = false;  // of waves: rows are divided by their length
  bool learned = false;    // gradients reach the directions

  int64_t directions(int64_t dim) const { return omega.defined() ? omega.dim(1) : dim; }
  int64_t features(int64_t dim) const;
  // Each row is divided by a scale.
  bool has_log_scale() const {
    return kind == Kind::positive || (kind == Kind::waves && !unit_rows);
  }
  bool has_positions() const { return kind == Kind::cosine; }  // φ depends on the position
  Divisor divisor() const {  // φ(q)·φ(k) of waves may be negative
    if (kind != Kind::waves) return Divisor::positive;
    return unit_rows ? Divisor::either_sign : Divisor::floored;
  }
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

// φ(x) = e^{|y|²/2}·[sin(ωy), cos(ωy)]/√directions with y = scale·x, so that φ(x)·φ(x') is another
// such estimate, e^{(|y|²+|y'|²)/2} times the mean of cos(ω(y - y')): exact for x = x', negative at
// times elsewhere. Same paper, lemma 1. log_scale is |y|²/2. Divisors are floored, normalizer.h.
FeatureMap trigonometric_random(const Tensor& omega, double scale);

// φ(x) = relu(ωx) + epsilon, the generalised kernel of the same paper, section 2.2.
FeatureMap relu_random(const Tensor& omega, double epsilon);
FeatureMap relu_plain(double epsilon);  // relu(x) + epsilon, without projection

// φ(x) = [sin(ωx̂), cos(ωx̂)]/√directions of the row's direction x̂ = x/√(|x|² + 1e-6). Peng et al.
// 2021 (arXiv:2103.02143), section 3.1. `omega` may be learned.
FeatureMap unit_waves(const Var& omega, bool learned);

// φ(x) = [relu(x)·cos(π·i/(2·span)), relu(x)·sin(π·i/(2·span))] at position i among the keys, so
// that φ(x_i)·φ(y_j) = relu(x_i)·relu(y_j)·cos(π·(i - j)/(2·span)). Qin et al. 2022
// (arXiv:2202.08791), eqs. 10-12. Not negative where |i - j| <= span.
FeatureMap cosine_weighted(int64_t span);

// φ(x) = [1, y, y_a·y_b for a < b, y_a²/√2] with y = ωx/f^¼ for f directions, so that φ(x)·φ(x') =
// 1 + s + s²/2 with s = ωx·ω'x'/√f: 1 + f + f·(f + 1)/2 features. Arora et al. 2024
// (arXiv:2402.18668), section 4.1.
FeatureMap taylor_map(const Var& omega, const Var& key_omega);

// φ(x) = [softmax(ωx), softmax(-ωx)]. Zhang et al. 2024 (arXiv:2402.04347), section 4.
FeatureMap softmax_pair(const Var& omega, const Var& key_omega);

// The features of all rows of x [batch, heads, len, dim], as an op; of queries at positions 0, 1,
// … where the map asks. Directions get no gradient. Rows of padding become
// zeros by selection, so that their values, even NaN, reach neither a sum nor a gradient.
struct Features {
  Var phi;           // [batch, heads, len, features]
  Tensor log_scale;  // [batch, heads, len], -inf for padding; undefined unless map.has_log_scale()
};
Features features(const Var& x, const FeatureMap& map, Lengths lengths = {});

// Random directions [heads, count, dim]: independent rows with N(0, 1) entries; or rows that are
// orthogonal within blocks of `dim` rows, each block Haar distributed, with the lengths of
// independent rows.
Tensor random_directions(int64_t heads, int64_t count, int64_t dim, bool orthogonal, Rng rng);
// Each direction of `half` [heads, count, dim] and its opposite next to each other: [heads,
// 2·count, dim].
Tensor opposite_pairs(const Tensor& half);

}  // namespace attn
