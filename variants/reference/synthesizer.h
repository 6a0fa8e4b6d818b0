// Synthesizer written out from Tay et al. 2021, section 3: its four kinds of logits, one by one,
// and what Long Range Arena's code adds up. In double; weights are [1, heads, rows, cols].
#pragma once

#include "variants/reference/attention.h"

namespace oracle {

inline double hidden_dot(const Array& q, const Array& w, Index b, Index h, Index i, Index col) {
  double sum = 0;
  for (Index c = 0; c < q.dim; ++c) sum += std::fmax(0.0, q.at(b, h, i, c)) * w.at(0, h, c, col);
  return sum;
}

inline double synthetic_logit(const std::string& kind, const Array& q, const Array& first,
                              const Array& second, Index b, Index h, Index i, Index j) {
  if (kind == "random") return first.at(0, h, i, j);
  if (kind == "factorized_random") return dot(first.row(0, h, i), second.row(0, h, j));
  if (kind == "factorized_dense")
    return hidden_dot(q, first, b, h, i, j % first.dim) *
           hidden_dot(q, second, b, h, i, j / first.dim);
  double sum = 0;  // dense: column j of W₂ is a row here
  for (Index c = 0; c < q.dim; ++c) sum += std::fmax(0.0, q.at(b, h, i, c)) * first.at(0, h, j, c);
  return sum;
}

// Long Range Arena's mixture of products and a random matrix.
inline Array synthesizer_lra(const Array& q, const Array& k, const Array& v, const Array& matrix,
                             const Visibility& m) {
  return average(q, v, m, [&](Index b, Index h, Index i, Index j) {
    return dot(q.row(b, h, i), k.row(b, h, j)) / std::sqrt(static_cast<double>(q.dim)) +
           matrix.at(0, h, i, j);
  });
}

inline Array synthesizer(const std::string& kind, const Array& q, const Array& v,
                         const Array& first, const Array& second, const Visibility& m) {
  return average(q, v, m, [&](Index b, Index h, Index i, Index j) {
    return synthetic_logit(kind, q, first, second, b, h, i, j);
  });
}

}  // namespace oracle
