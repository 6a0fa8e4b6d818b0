// path against products of explicit matrices in double, with the gradients of all inputs; what it
// equals where maps do nothing or reflect; lengths around chunks; decoding.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"
#include "variants/chunked/unit_triangle.h"

namespace attn::path_test {
namespace {

using stepwise::Array;
using stepwise::Index;

std::unique_ptr<Attention> build_path(int64_t heads, int64_t dim, int64_t len) {
  return find_variant("path").build({heads, dim, len, true, 3, {}}, {});
}

Var answer(const Attention& path, const stepwise::Drawn& x,
           const std::vector<int64_t>& lengths = {}) {
  return path.forward(x.vars[0], x.vars[1], x.vars[2], {true, lengths},
                      std::array{x.vars[3], x.vars[4]});
}

// Softmax of q_i·M·k_jᵀ/√d with the d×d matrix M = H_i·…·H_{j+1}, multiplied out for each pair.
// x: q, k, v, w, beta.
Array twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
  const Array &q = x[0], &k = x[1], &v = x[2];
  const Index d = q.dim;
  const auto at = [d](Index r, Index c) { return static_cast<size_t>(r * d + c); };
  return oracle::average(
      q, v, {.causal = true, .lengths = lengths}, [&](Index b, Index h, Index i, Index j) {
        std::vector<double> m(at(d, 0), 0);
        for (Index c = 0; c < d; ++c) m[at(c, c)] = 1;
        const Index valid = lengths.empty() ? q.len : lengths[static_cast<size_t>(b)];
        for (Index s = std::min(i, valid - 1); s > j; --s) {
          double square = 1e-6;
          for (Index c = 0; c < d; ++c) square += x[3].at(b, h, s, c) * x[3].at(b, h, s, c);
          const double beta = 2 / (1 + std::exp(-x[4].at(b, h, s, 0))) / square;
          std::vector<double> next = m;
          for (Index r = 0; r < d; ++r) {
            double along = 0;
            for (Index c = 0; c < d; ++c) along += m[at(r, c)] * x[3].at(b, h, s, c);
            for (Index c = 0; c < d; ++c) next[at(r, c)] -= beta * along * x[3].at(b, h, s, c);
          }
          m = next;
        }
        double logit = 0;
        for (Index r = 0; r < d; ++r)
          for (Index c = 0; c < d; ++c) logit += q.at(b, h, i, r) * m[at(r, c)] * k.at(b, h, j, c);
        return logit / std::sqrt(static_cast<double>(d));
      });
}

TEST(Path, EqualsProductsOfMatrices) {
  struct Case {
    int64_t len;
    std::vector<int64_t> lengths;
  };
  // One chunk, a chunk and one more, three chunks with padding inside and across.
  for (const Case& c : {Case{1, {}}, {19, {}}, {65, {}}, {150, {150, 70}}, {70, {0, 66}}}) {
    const auto path = build_path(2, 5, c.len);
    const stepwise::Drawn x({2, 2, c.len, 5}, {5, 1}, c.lengths);
    const Var out = answer(*path, x, c.lengths);
    std::vector<Array> arrays;
    for (const Tensor& t : x.all) arrays.push_back(bridge::array_of(t));
    EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, c.lengths).x), 100 * kEpsilon)
        << c.len;
    if (c.len > 70) continue;  // the twin's time
    const Tensor seed = bridge::normal(out.shape(), "seed");
    out.backward(seed);
    bridge::expect_gradients(x.all, x.grads(), seed, [&](const std::vector<Array>& moved) {
      return twin(moved, c.lengths);
    });
  }
}

// Inputs of `len` positions, whose gate beta is `beta`.
stepwise::Drawn drawn(int64_t len, int64_t dim, real beta) {
  stepwise::Drawn x({1, 2, len, dim}, {dim, 1}, {});
  x.all[4].fill(beta);
  return x;
}

Array softmax_of(const stepwise::Drawn& x) {
  return oracle::softmax_attention(bridge::array_of(x.all[0]), bridge::array_of(x.all[1]),
                                   bridge::array_of(x.all[2]), {.causal = true});
}

TEST(Path, WithoutStrengthEqualsFull) {
  const auto path = build_path(2, 6, 130);
  const stepwise::Drawn x = drawn(130, 6, -1000);
  EXPECT_LE(bridge::relative_error(answer(*path, x).value(), softmax_of(x).x), 20 * kEpsilon);
}

TEST(Path, DirectionsAcrossAllKeysEqualFull) {
  const auto path = build_path(2, 6, 130);
  const stepwise::Drawn x = drawn(130, 6, 3);
  for (int64_t i = 0; i < x.all[1].size(); i += 6)
    x.all[1][i] = 0, std::fill_n(x.all[3].data() + i + 1, 5, real(0));
  EXPECT_LE(bridge::relative_error(answer(*path, x).value(), softmax_of(x).x), 20 * kEpsilon);
}

// β = 2 and one direction for all: a key at an odd distance is mirrored, at an even one it is not.
// Rows so long that the constant beside their length vanishes.
TEST(Path, FullReflectionsAlternate) {
  const auto path = build_path(2, 6, 131);
  const stepwise::Drawn x = drawn(131, 6, 1000);
  for (int64_t i = 0; i < x.all[3].size(); ++i) x.all[3][i] = i % 6 == 2 ? real(1e8) : real(0);
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]),
              v = bridge::array_of(x.all[2]);
  const Array want =
      oracle::average(q, v, {.causal = true}, [&](Index b, Index h, Index i, Index j) {
        double logit = 0;
        for (Index c = 0; c < 6; ++c)
          logit += q.at(b, h, i, c) * k.at(b, h, j, c) * (c == 2 && (i - j) % 2 == 1 ? -1 : 1);
        return logit / std::sqrt(6.0);
      });
  EXPECT_LE(bridge::relative_error(answer(*path, x).value(), want.x), 200 * kEpsilon);
}

TEST(Path, InverseOfATriangle) {
  const Var a(bridge::normal({3, 7, 7}, "a"), true);
  const Var t = unit_triangle_inverse(a);
  for (int64_t m = 0; m < 3; ++m)
    for (int64_t i = 0; i < 7; ++i)
      for (int64_t j = 0; j < 7; ++j) {  // (I + A)·T = I
        double sum = static_cast<double>(t.value()[(m * 7 + i) * 7 + j]);
        for (int64_t c = 0; c < i; ++c)
          sum += static_cast<double>(a.value()[(m * 7 + i) * 7 + c]) *
                 static_cast<double>(t.value()[(m * 7 + c) * 7 + j]);
        EXPECT_NEAR(sum, i == j ? 1 : 0, 1000 * kEpsilon);
      }
}

}  // namespace
}  // namespace attn::path_test
