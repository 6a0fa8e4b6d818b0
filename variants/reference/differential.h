// Differential attention the slow, obvious way, in double: two softmaxes and their difference, and
// an RMS norm of rows. arXiv:2410.05258, eqs. 1-3.
#pragma once

#include <cmath>
#include <vector>

#include "variants/reference/attention.h"

namespace oracle {

// Columns [which·dim/2, (which + 1)·dim/2).
inline Array half_of(const Array& a, Index which) {
  Array out(a.batch, a.heads, a.len, a.dim / 2);
  for (Index b = 0; b < a.batch; ++b)
    for (Index h = 0; h < a.heads; ++h)
      for (Index i = 0; i < a.len; ++i)
        for (Index c = 0; c < out.dim; ++c) out.at(b, h, i, c) = a.at(b, h, i, which * out.dim + c);
  return out;
}

// lambdas: λ_q1, λ_k1, λ_q2, λ_k2.
inline Array differential_attention(const Array& q, const Array& k, const Array& v,
                                    const std::vector<Array>& lambdas, double start,
                                    const Visibility& m) {
  const auto power = [&](std::size_t at) {
    return std::exp(dot(lambdas[at].row(0, 0, 0), lambdas[at + 1].row(0, 0, 0)));
  };
  const double lambda = power(0) - power(2) + start;
  Array out = softmax_attention(half_of(q, 0), half_of(k, 0), v, m);
  const Array second = softmax_attention(half_of(q, 1), half_of(k, 1), v, m);
  for (std::size_t i = 0; i < out.x.size(); ++i) out.x[i] -= lambda * second.x[i];
  return out;
}

// factor · gain ⊙ x / √(mean x² + ε); gain [1, 1, 1, dim].
inline Array rms_normalised(const Array& x, const Array& gain, double epsilon, double factor) {
  Array out = x;
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h)
      for (Index i = 0; i < x.len; ++i) {
        const double mean = dot(x.row(b, h, i), x.row(b, h, i)) / static_cast<double>(x.dim);
        for (Index c = 0; c < x.dim; ++c)
          out.at(b, h, i, c) *= factor * gain.at(0, 0, 0, c) / std::sqrt(mean + epsilon);
      }
  return out;
}

}  // namespace oracle
