// Weights by collisions of sign hashes, written out from Zeng et al. 2021, arXiv:2111.09714:
// codes of sign bits, the share of hashes that agree, its expectation, and the surrogate
// that its gradients are those of. O(n²·hashes) in double.
#pragma once

#include <algorithm>
#include <numbers>

#include "variants/reference/gated.h"

namespace oracle {

// The codes of all rows, each of `hashes` numbers; planes [1, heads, hashes·bits, dim].
class SignCodes {
 public:
  SignCodes(const Array& x, const Array& planes, Index bits)
      : heads_(x.heads), len_(x.len), hashes_(planes.len / bits) {
    for (Index b = 0; b < x.batch; ++b)
      for (Index h = 0; h < heads_; ++h)
        for (Index i = 0; i < len_; ++i)
          for (Index s = 0; s < hashes_; ++s) {
            codes_.push_back(0);
            for (Index bit = 0; bit < bits; ++bit)
              if (dot(x.row(b, h, i), planes.row(0, h, s * bits + bit)) > 0)
                codes_.back() += Index{1} << bit;
          }
  }
  Index hashes() const { return hashes_; }
  const Index* of(Index b, Index h, Index i) const {
    return codes_.data() + ((b * heads_ + h) * len_ + i) * hashes_;
  }

 private:
  Index heads_, len_, hashes_;
  std::vector<Index> codes_;
};

// The share of hashes in which two rows agree.
inline double collisions(const Index* a, const Index* b, Index hashes) {
  Index same = 0;
  for (Index s = 0; s < hashes; ++s) same += a[s] == b[s];
  return static_cast<double>(same) / static_cast<double>(hashes);
}

inline Array collided(const Array& q, const Array& k, const Array& v, const Array& planes,
                      Index bits, const Visibility& visible) {
  const SignCodes of_q(q, planes, bits), of_k(k, planes, bits);
  return weighted_sum(q, v, visible, [&](Index b, Index h, Index i, Index j) {
    return collisions(of_q.of(b, h, i), of_k.of(b, h, j), of_q.hashes());
  });
}

// Weights (1 - arccos(q·k)/π)^bits of rows over √(|x|² + epsilon), the expectation of the above.
inline Array expected_collided(const Array& q, const Array& k, const Array& v, Index bits,
                               double epsilon, const Visibility& visible) {
  const Array unit_q = unit_rows(q, epsilon), unit_k = unit_rows(k, epsilon);
  return weighted_sum(q, v, visible, [&](Index b, Index h, Index i, Index j) {
    const double product = dot(unit_q.row(b, h, i), unit_k.row(b, h, j));
    return std::pow(1 - std::acos(std::clamp(product, -1.0, 1.0)) / std::numbers::pi,
                    static_cast<double>(bits));
  });
}

struct QueriesKeys {
  const Array &q, &k;
};

// Equals collided() at x = at, where a weight w has the derivative bits/2·w with respect to the
// product of the rows at length one.
inline Array collided_near(const QueriesKeys& x, const QueriesKeys& at, const Array& v,
                           const Array& planes, Index bits, double epsilon,
                           const Visibility& visible) {
  const SignCodes of_q(at.q, planes, bits), of_k(at.k, planes, bits);
  const Array q = unit_rows(x.q, epsilon), k = unit_rows(x.k, epsilon);
  const Array q0 = unit_rows(at.q, epsilon), k0 = unit_rows(at.k, epsilon);
  return weighted_sum(q, v, visible, [&](Index b, Index h, Index i, Index j) {
    const double moved =
        dot(q.row(b, h, i), k.row(b, h, j)) - dot(q0.row(b, h, i), k0.row(b, h, j));
    return collisions(of_q.of(b, h, i), of_k.of(b, h, j), of_q.hashes()) *
           (1 + static_cast<double>(bits) / 2 * moved);
  });
}

}  // namespace oracle
