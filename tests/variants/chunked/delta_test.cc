// The delta rule, and path, whose positions are its products.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"
#include "variants/chunked/unit_triangle.h"

namespace attn::delta_test {
namespace {

// deltanet, gated_deltanet and kda against their equations in double, as matrices applied to the
// state, with the gradients of all inputs; what the three have in common; what a write replaces.

using stepwise::answer;
using stepwise::Array;
using stepwise::build;
using stepwise::Index;

// S_t = (I - β·k̂ᵀ·k̂)·diag(a)·S_{t-1} + β·k̂ᵀ·v, with the matrix written out and β = most·σ.
// `rates`: e^A_log of each head; empty: no decay, and gate 0 is β.
Array twin(const std::vector<Array>& x, const std::vector<double>& rates,
           const std::vector<int64_t>& lengths, double most = 1) {
  const Array &q = x[0], &k = x[1], &v = x[2], &beta = x.back();
  const Index d = q.dim;
  Array out(q.batch, q.heads, q.len, v.dim);
  const auto unit = [&](const Array& rows, Index b, Index h, Index t, Index c) {
    double square = 1e-6;
    for (Index e = 0; e < d; ++e) square += rows.at(b, h, t, e) * rows.at(b, h, t, e);
    return rows.at(b, h, t, c) / std::sqrt(square);
  };
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      Array state(1, 1, d, v.dim);
      const Index valid = lengths.empty() ? k.len : lengths[static_cast<size_t>(b)];
      for (Index t = 0; t < q.len; ++t) {
        if (t < valid) {
          const double strength = most / (1 + std::exp(-beta.at(b, h, t, 0)));
          Array next(1, 1, d, v.dim);
          for (Index r = 0; r < d; ++r)
            for (Index j = 0; j < v.dim; ++j) {
              const double key = unit(k, b, h, t, r);
              double sum = strength * key * v.at(b, h, t, j);
              for (Index c = 0; c < d; ++c) {
                double decay = 1;
                if (!rates.empty()) {
                  const double dt = x[3].at(b, h, t, x[3].dim == 1 ? 0 : c);
                  decay = std::exp(-rates[static_cast<size_t>(h)] * std::log1p(std::exp(dt)));
                }
                sum += ((r == c ? 1 : 0) - strength * key * unit(k, b, h, t, c)) * decay *
                       state.at(0, 0, c, j);
              }
              next.at(0, 0, r, j) = sum;
            }
          state = next;
        }
        for (Index c = 0; c < d; ++c)
          for (Index j = 0; j < v.dim; ++j)
            out.at(b, h, t, j) +=
                unit(q, b, h, t, c) / std::sqrt(static_cast<double>(d)) * state.at(0, 0, c, j);
      }
    }
  return out;
}

std::vector<int64_t> widths_of(const Attention& variant) {
  std::vector<int64_t> widths;
  for (const GateInput& gate : variant.gates()) widths.push_back(gate.width);
  return widths;
}

TEST(DeltaRule, EqualsItsEquations) {
  const std::vector<std::pair<const char*, double>> all = {
      {"deltanet", 1}, {"gated_deltanet", 1}, {"kda", 1}, {"deltanet", 2}, {"gated_deltanet", 1.7}};
  for (const auto& [name, most] : all)
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {19, 8}}) {
      SCOPED_TRACE(name);
      std::map<std::string, ParamValue> given;
      if (most != 1) given.emplace("beta_max", most);
      const auto variant = build(name, 2, 5, 19, given);
      std::vector<double> rates;
      for (const auto& weight : variant->weights())
        for (const real a_log : weight.value.value().values())
          rates.push_back(std::exp(static_cast<double>(a_log)));
      const stepwise::Drawn x({2, 2, 19, 5}, widths_of(*variant), lengths);
      const Var out = answer(*variant, x, lengths);
      std::vector<Array> arrays = bridge::arrays_of(x.all);
      EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, rates, lengths, most).x),
                100 * kEpsilon);
      const Tensor seed = bridge::normal(out.shape(), "seed");
      out.backward(seed);
      bridge::expect_gradients(x.all, x.grads(), seed, [&](const std::vector<Array>& moved) {
        return twin(moved, rates, lengths, most);
      });
    }
}

// Without decay the three are one variant, over several chunks too.
TEST(DeltaRule, WithoutDecayAllThreeAreDeltanet) {
  const stepwise::Drawn plain({1, 2, 150, 8}, {1}, {});
  const Array want = bridge::array_of(answer(*build("deltanet", 2, 8, 150), plain).value());
  for (const char* name : {"gated_deltanet", "kda"}) {
    const auto variant = build(name, 2, 8, 150);
    variant->weights()[0].value.set_value(Tensor::full({2}, -200));  // e^-200 rounds to no decay
    stepwise::Drawn x({1, 2, 150, 8}, widths_of(*variant), {});
    x.vars[4] = plain.vars[3];
    EXPECT_LE(bridge::relative_error(answer(*variant, x).value(), want.x), 200 * kEpsilon) << name;
  }
}

TEST(DeltaRule, KdaWithEqualDecaysIsGatedDeltanet) {
  const auto gated = build("gated_deltanet", 2, 4, 70), kda = build("kda", 2, 4, 70);
  const stepwise::Drawn x({1, 2, 70, 4}, {1, 1}, {});
  stepwise::Drawn y({1, 2, 70, 4}, {4, 1}, {});
  for (int64_t i = 0; i < y.all[3].size(); ++i) y.all[3].data()[i] = x.all[3][i / 4];
  y.vars[4] = x.vars[4];
  for (const auto& variant : {gated.get(), kda.get()})
    variant->weights()[0].value.set_value(Tensor::full({2}, -1));
  EXPECT_LE(bridge::relative_error(answer(*kda, y).value(),
                                   bridge::array_of(answer(*gated, x).value()).x),
            200 * kEpsilon);
}

// With β = 1, a key written twice gives the second value; with β = 0 nothing is written.
TEST(DeltaRule, AWriteReplacesWhatTheKeyHeld) {
  const auto deltanet = build("deltanet", 1, 4, 2);
  const stepwise::Drawn x({1, 1, 2, 4}, {1}, {});
  for (const int i : {0, 1}) x.all[static_cast<size_t>(i)].fill(1);
  x.all[3].fill(100);
  const Tensor written = answer(*deltanet, x).value();
  for (int64_t c = 0; c < 4; ++c)
    EXPECT_NEAR(2 * written[4 + c], x.all[2][4 + c], 1e-5) << "outputs are scaled by 1/√4";
  x.all[3].fill(-200);
  const Tensor nothing = answer(*deltanet, x).value();
  for (const real number : nothing.values()) EXPECT_NEAR(number, 0, 1e-30);
}

// What a key holds turns its sign where β = 2 and nothing new is written.
TEST(DeltaRule, AWriteOfStrengthTwoTurnsTheSign) {
  for (const char* name : {"deltanet", "gated_deltanet"}) {
    const auto variant = build(name, 1, 4, 2, {{"beta_max", 2.0}});
    for (const auto& weight : variant->weights())
      weight.value.set_value(Tensor::full({1}, -200));  // e^-200 rounds to no decay
    const bool decays = variant->gates().size() > 1;
    stepwise::Drawn x({1, 1, 2, 4}, decays ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1},
                      {});
    for (const int i : {0, 1}) x.all[static_cast<size_t>(i)].fill(1);
    for (int64_t c = 0; c < 4; ++c) x.all[2].data()[4 + c] = 0;
    x.all.back().data()[0] = 0;  // β = 1
    x.all.back().data()[1] = 100;
    const Tensor out = answer(*variant, x).value();
    for (int64_t c = 0; c < 4; ++c) EXPECT_NEAR(out[4 + c], -out[c], 1e-5) << name;
  }
}

TEST(DeltaRule, KeepsAConstantState) {
  for (const char* name : {"deltanet", "gated_deltanet", "kda"})
    for (const int64_t capacity : {10, 4096})
      EXPECT_EQ(build(name, 2, 8, 4096)->decoder(3, capacity)->state_bytes(),
                3 * 2 * 8 * 8 * int64_t{sizeof(real)})
          << name;
}

// path against products of explicit matrices in double, with the gradients of all inputs; what it
// equals where maps do nothing or reflect; lengths around chunks; decoding.

// Softmax of q_i·M·k_jᵀ/√d with the d×d matrix M = H_i·…·H_{j+1}, multiplied out for each pair.
// x: q, k, v, w, beta.
Array path_twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
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
    const auto path = build("path", 2, 5, c.len);
    const stepwise::Drawn x({2, 2, c.len, 5}, {5, 1}, c.lengths);
    const Var out = answer(*path, x, c.lengths);
    std::vector<Array> arrays = bridge::arrays_of(x.all);
    EXPECT_LE(bridge::relative_error(out.value(), path_twin(arrays, c.lengths).x), 100 * kEpsilon)
        << c.len;
    if (c.len > 70) continue;  // the path_twin's time
    const Tensor seed = bridge::normal(out.shape(), "seed");
    out.backward(seed);
    bridge::expect_gradients(x.all, x.grads(), seed, [&](const std::vector<Array>& moved) {
      return path_twin(moved, c.lengths);
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
  const auto path = build("path", 2, 6, 130);
  const stepwise::Drawn x = drawn(130, 6, -1000);
  EXPECT_LE(bridge::relative_error(answer(*path, x).value(), softmax_of(x).x), 20 * kEpsilon);
}

TEST(Path, DirectionsAcrossAllKeysEqualFull) {
  const auto path = build("path", 2, 6, 130);
  const stepwise::Drawn x = drawn(130, 6, 3);
  for (int64_t i = 0; i < x.all[1].size(); i += 6)
    x.all[1][i] = 0, std::fill_n(x.all[3].data() + i + 1, 5, real(0));
  EXPECT_LE(bridge::relative_error(answer(*path, x).value(), softmax_of(x).x), 20 * kEpsilon);
}

// β = 2 and one direction for all: a key at an odd distance is mirrored, at an even one it is not.
// Rows so long that the constant beside their length vanishes.
TEST(Path, FullReflectionsAlternate) {
  const auto path = build("path", 2, 6, 131);
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
}  // namespace attn::delta_test
