// Feature maps φ of kernel attention and the random directions they project on. Rows of padded keys
// become zeros by selection, after the map: whatever they held reaches neither the numerator nor
// the denominator, nor a gradient.
#pragma once

#include <cstdint>
#include <span>

#include "core/rng.h"
#include "core/var.h"

namespace attn {

using Lengths = std::span<const int64_t>;  // valid rows of each batch entry; empty: all

// φ(x) = elu(x) + 1, written without the cancellation: x + 1 above 0, e^x below. Katharopoulos et
// al. 2020, eq. 7.
Var elu_features(const Var& x, Lengths lengths = {});

// φ(x) = exp(scale·ωx - |scale·x|²/2), whose products estimate exp(scale²·x·y) without bias up to
// the factor `features`, which cancels in attention. Choromanski et al. 2021 (arXiv:2009.14794),
// eq. 7. Each row is divided by its own largest entry, so it neither overflows nor depends on
// another row; log_scale says by how much.
struct PositiveFeatures {
  Var phi;           // [batch, heads, len, features]
  Tensor log_scale;  // [batch, heads, len]
};
PositiveFeatures positive_features(const Var& x, const Var& omega, double scale,
                                   Lengths lengths = {});

// φ(x) = relu(ωx) + epsilon: the generalised kernel of the same paper, section 2.2.
Var relu_features(const Var& x, const Var& omega, double epsilon, Lengths lengths = {});

// [heads, count, dim]: rows of N(0, 1) entries, independent; or orthogonal within blocks of `dim`
// rows, each block Haar distributed, with the lengths that independent rows would have.
Tensor random_directions(int64_t heads, int64_t count, int64_t dim, bool orthogonal, Rng rng);

}  // namespace attn
