// mesa against ridge regressions in double, each from all positions before, with the gradients of
// all inputs and of the ridge; equal chunk sizes; decoding; convergence; large and small ridges.
#include <gtest/gtest.h>

#include <array>

#include "core/ops/ops.h"
#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/key_rows.h"
#include "variants/chunked/mesa_solver.h"
#include "variants/reference/gated.h"

namespace attn::mesa_test {
namespace {

using stepwise::answer;
using stepwise::Array;
using stepwise::build;
using stepwise::Index;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// rows·X = sides by elimination with pivots: rows [n, n], sides [n, m] becomes X.
void eliminate(std::vector<double> rows, std::vector<double>& sides) {
  const auto n = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(rows.size()))));
  const size_t m = sides.size() / n;
  for (size_t i = 0; i < n; ++i) {
    size_t best = i;
    for (size_t j = i; j < n; ++j)
      if (std::abs(rows[j * n + i]) > std::abs(rows[best * n + i])) best = j;
    for (size_t c = 0; c < n; ++c) std::swap(rows[i * n + c], rows[best * n + c]);
    for (size_t c = 0; c < m; ++c) std::swap(sides[i * m + c], sides[best * m + c]);
    for (size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      const double factor = rows[j * n + i] / rows[i * n + i];
      for (size_t c = i; c < n; ++c) rows[j * n + c] -= factor * rows[i * n + c];
      for (size_t c = 0; c < m; ++c) sides[j * m + c] -= factor * sides[i * m + c];
    }
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t c = 0; c < m; ++c) sides[i * m + c] /= rows[i * n + i];
}

// o_t = q̂_t·M_t with M_t the matrix for which Σ_{j<=t} w_tj·|k̂_j·M - v_j|² + Σ_c λ_c·|M_c|² is
// least, w_tj = β_j·a_{j+1}·…·a_t. x: q, k, v, decay, beta, ridge [1, 1, heads, dim]. Positions
// from `from` on.
Array twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths, Index from = 0) {
  const Array q = oracle::unit_rows(x[0], 1e-6), k = oracle::unit_rows(x[1], 1e-6);
  const Index d = q.dim;
  const auto at = [d](Index c, Index e) { return static_cast<size_t>(c * d + e); };
  Array out(q.batch, q.heads, q.len, d);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index t = from; t < q.len; ++t) {
        std::vector<double> normal(at(d, 0)), sides(at(d, 0));
        for (Index c = 0; c < d; ++c)
          normal[at(c, c)] = oracle::softplus(x[5].at(0, 0, h, c)) + 0.25;
        double left = 1;
        const Index valid = lengths.empty() ? q.len : lengths[static_cast<size_t>(b)];
        for (Index j = std::min(t, valid - 1); j >= 0 && left > 1e-18; --j) {
          const double weight = left * logistic(x[4].at(b, h, j, 0));
          for (Index c = 0; c < d; ++c)
            for (Index e = 0; e < d; ++e) {
              normal[at(c, e)] += weight * k.at(b, h, j, c) * k.at(b, h, j, e);
              sides[at(c, e)] += weight * k.at(b, h, j, c) * x[2].at(b, h, j, e);
            }
          left *= logistic(x[3].at(b, h, j, 0));
        }
        eliminate(normal, sides);
        for (Index c = 0; c < d; ++c)
          for (Index e = 0; e < d; ++e) out.at(b, h, t, e) += q.at(b, h, t, c) * sides[at(c, e)];
      }
  return out;
}

std::vector<Array> arrays_of(const Attention& mesa, const stepwise::Drawn& x) {
  std::vector<Array> arrays = bridge::arrays_of(x.all);
  const Tensor ridge = mesa.weights()[0].value.value();
  arrays.push_back(bridge::array_of(ridge.reshaped({1, 1, ridge.dim(0), ridge.dim(1)})));
  return arrays;
}

TEST(Mesa, EqualsItsRidgeRegressions) {
  struct Case {
    int64_t len;
    std::vector<int64_t> lengths;
  };
  for (const Case& c : {Case{19, {}}, {75, {70, 9}}}) {
    const auto mesa = build("mesa", 2, 5, c.len);
    const Var ridge = mesa->weights()[0].value;
    for (real& value : ridge.value().values()) value += real(0.3);
    ridge.value()[3] = -1;  // and channels differ
    const stepwise::Drawn x({2, 2, c.len, 5}, {1, 1}, c.lengths);
    for (real& value : x.all[3].values()) value += real(3);  // decays of about 0.95
    const Var out = answer(*mesa, x, c.lengths);
    const std::vector<Array> arrays = arrays_of(*mesa, x);
    EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, c.lengths).x), 200 * kEpsilon);
    const Tensor seed = bridge::normal(out.shape(), "seed");
    out.backward(seed);
    std::vector<Tensor> inputs = x.all, grads = x.grads();
    inputs.push_back(ridge.value().reshaped({1, 1, 2, 5}));
    grads.push_back(ridge.grad());
    bridge::expect_gradients(
        inputs, grads, seed,
        [&](const std::vector<Array>& moved) { return twin(moved, c.lengths); }, 1e-5);
  }
}

TEST(Mesa, ChunkSizesAreEqual) {
  const Shape rows{1, 2, 130, 6};
  const std::vector<Tensor> inputs = {bridge::normal(rows, "q"), bridge::normal(rows, "k", 0.4),
                                      bridge::normal(rows.with(3, 1), "beta"),
                                      bridge::normal(rows.with(3, 1), "decay")};
  const auto run = [&](int64_t chunk) {
    const std::vector<Var> x = leaves_of(inputs, true);
    const Var lambda(Tensor::full({2, 6}, real(0.7)), true);
    const Var out = mesa_solve({.q = x[0],
                                .k = x[1],
                                .written = multiply(x[1], sigmoid(x[2])),
                                .decay = x[3],
                                .rule = LogDecay::of_sigmoid(1),
                                .lambda = lambda},
                               20, {130}, chunk);
    out.backward(bridge::normal(out.shape(), "seed"));
    std::vector<Tensor> all = {out.value(), lambda.grad()};
    for (const Var& v : x) all.push_back(v.grad());
    return all;
  };
  const std::vector<Tensor> want = run(32);
  for (const int64_t chunk : {1, 7, 16, 64, 130}) {
    const std::vector<Tensor> got = run(chunk);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_LE(bridge::relative_error(got[i], bridge::array_of(want[i]).x), 500 * kEpsilon)
          << i << " with chunks of " << chunk;
  }
}

TEST(Mesa, StepsAreItsRidgeRegressions) {
  const int64_t len = 60, half = 31;
  const auto mesa = build("mesa", 2, 5, len);
  const stepwise::Drawn x({1, 2, len, 5}, {1, 1}, {});
  const Array want = twin(arrays_of(*mesa, x), {});
  const auto rows = [&](size_t i, int64_t begin, int64_t end) {
    return slice(x.vars[i], 2, begin, end).value();
  };
  const auto decoder = mesa->decoder(1, len);
  EXPECT_EQ(decoder->state_bytes(), static_cast<int64_t>(sizeof(real)) * 2 * 2 * 5 * 5);
  decoder->extend(rows(1, 0, half), rows(2, 0, half), {},
                  std::array{rows(3, 0, half), rows(4, 0, half)});
  const Tensor out({1, 2, 1, 5});
  for (int64_t t = half; t < len; ++t) {
    decoder->step(rows(0, t, t + 1), rows(1, t, t + 1), rows(2, t, t + 1), out,
                  std::array{rows(3, t, t + 1), rows(4, t, t + 1)});
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t c = 0; c < 5; ++c)
        EXPECT_NEAR(out[h * 5 + c], want.at(0, h, t, c), 100 * kEpsilon) << t;
  }
}

TEST(Mesa, SixtyFiveThousandPositionsKeepTheirDigits) {
  const int64_t len = kIsDouble ? 2048 : 65536, from = len - 64;
  const auto mesa = build("mesa", 1, 4, len);
  const stepwise::Drawn x({1, 1, len, 4}, {1, 1}, {});
  for (real& value : x.all[3].values()) value += real(9);  // sums of about 8000 positions
  const NoGrad no_grad;
  const Var out = answer(*mesa, x);
  const Array want = twin(arrays_of(*mesa, x), {}, from);
  double error = 0, size = 0;
  for (int64_t i = from * 4; i < len * 4; ++i) {
    error += std::pow(static_cast<double>(out.value()[i]) - want.x[static_cast<size_t>(i)], 2);
    size += std::pow(want.x[static_cast<size_t>(i)], 2);
  }
  EXPECT_LE(std::sqrt(error / size), 2000 * kEpsilon);
}

// Without the small number that popular code adds to both divisors, 30 iterations solve to
// rounding.
TEST(Mesa, IterationsConverge) {
  const auto mesa = build("mesa", 1, 32, 128);
  const stepwise::Drawn x({1, 1, 128, 32}, {1, 1}, {});
  for (real& value : x.all[3].values()) value += real(5);
  const Var keys = unit_rows(x.vars[1], 1, {}), strength = sigmoid(x.vars[4]);
  const Var lambda = shift(softplus(mesa->weights()[0].value), 0.25);
  const LogDecay rule = LogDecay::of_sigmoid(1);
  const auto answer_of = [&](int64_t iterations) {  // also so few that the variant refuses them
    const Var solved = mesa_solve({.q = unit_rows(x.vars[0], 1, {}),
                                   .k = keys,
                                   .written = multiply(keys, strength),
                                   .decay = x.vars[3],
                                   .rule = rule,
                                   .lambda = lambda},
                                  iterations, {});
    const Var v = multiply(x.vars[2], strength);
    return chunked_attention({.q = solved, .k = keys, .v = v, .log_decay = x.vars[3], .rule = rule},
                             {})
        .value();
  };
  const std::vector<double> want = twin(arrays_of(*mesa, x), {}).x;
  EXPECT_GE(bridge::relative_error(answer_of(3), want), 1e-4);
  EXPECT_LE(bridge::relative_error(answer_of(10), want), 1e-4);
  EXPECT_LE(bridge::relative_error(answer(*mesa, x).value(), want),
            kIsDouble ? 1e-12 : 100 * kEpsilon);
}

// A layer above that hardly reads an output gives it a gradient whose squares are below the
// smallest number. A power of two is exact, so that gradients are the same times that.
TEST(Mesa, GradientsOfAnySizeAreSolved) {
  const auto mesa = build("mesa", 1, 16, 40);
  const int power = kIsDouble ? -600 : -70;
  const auto gradients_by = [&](int shift_by) {
    const stepwise::Drawn x({1, 1, 40, 16}, {1, 1}, {});
    const Var out = answer(*mesa, x);
    Tensor seed = bridge::normal(out.shape(), "seed");
    for (real& value : seed.values()) value = std::ldexp(value, shift_by);
    out.backward(seed);
    std::vector<Tensor> grads = x.grads();
    for (Tensor& grad : grads)
      for (real& value : grad.values()) value = std::ldexp(value, -shift_by);
    return grads;
  };
  const std::vector<Tensor> want = gradients_by(0), got = gradients_by(power);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(bridge::relative_error(got[i], bridge::array_of(want[i]).x), 100 * kEpsilon) << i;
}

// λ far above H: λ·o = q_t·R_t, gated linear attention of β·v.
TEST(Mesa, ALargeRidgeIsGatedLinearAttention) {
  const auto mesa = build("mesa", 2, 5, 90);
  constexpr double kLarge = 1e8;
  mesa->weights()[0].value.value().fill(static_cast<real>(kLarge));
  const stepwise::Drawn x({1, 2, 90, 5}, {1, 1}, {});
  const Var got = scale(answer(*mesa, x), kLarge);
  const Var want = chunked_attention({.q = unit_rows(x.vars[0], 1, {}),
                                      .k = unit_rows(x.vars[1], 1, {}),
                                      .v = multiply(x.vars[2], sigmoid(x.vars[4])),
                                      .log_decay = x.vars[3],
                                      .rule = LogDecay::of_sigmoid(1)});
  EXPECT_LE(bridge::relative_error(got.value(), bridge::array_of(want.value()).x),
            kIsDouble ? 2e-6 : 100 * kEpsilon);
}

// One key k with its value v, unit length: o = (q·k)·v·β/(λ + β), whatever other numbers λ = 1 has.
TEST(Mesa, OneKeyIsShrunkByTheRidge) {
  const auto mesa = build("mesa", 1, 4, 1);
  const stepwise::Drawn x({1, 1, 1, 4}, {1, 1}, {});
  const Tensor got = answer(*mesa, x).value();
  const Array q = oracle::unit_rows(bridge::array_of(x.all[0]), 1e-6),
              k = oracle::unit_rows(bridge::array_of(x.all[1]), 1e-6);
  const double beta = logistic(static_cast<double>(x.all[4][0]));
  const double square = oracle::dot(k.row(0, 0, 0), k.row(0, 0, 0));
  for (int64_t c = 0; c < 4; ++c)
    EXPECT_NEAR(got[c],
                oracle::dot(q.row(0, 0, 0), k.row(0, 0, 0)) * static_cast<double>(x.all[2][c]) *
                    beta / (1 + beta * square),
                20 * kEpsilon);
}

// Values that are a linear function of the keys, and almost no ridge: that function of the query.
TEST(Mesa, WithoutARidgeItFindsALinearFunction) {
  const Shape rows{1, 1, 60, 5};
  const Var q(bridge::normal(rows, "q")), k(bridge::normal(rows, "k", 0.5));
  const Var function(bridge::normal({1, 1, 5, 5}, "function"));
  const Var decay(Tensor::full(rows.with(3, 1), real(9)));
  const Var solved = mesa_solve({.q = q,
                                 .k = k,
                                 .written = k,
                                 .decay = decay,
                                 .rule = LogDecay::of_sigmoid(1),
                                 .lambda = Var(Tensor::full({1, 5}, real(1e-7)))},
                                100, {});
  const Tensor got = chunked_attention({.q = solved,
                                        .k = k,
                                        .v = matmul(k, function),
                                        .log_decay = decay,
                                        .rule = LogDecay::of_sigmoid(1)})
                         .value();
  const Tensor want = matmul(q, function).value();
  for (int64_t i = 20 * 5; i < 60 * 5; ++i)  // enough keys for every direction
    EXPECT_NEAR(got[i], want[i], kIsDouble ? 1e-5 : 1e-3);
}

}  // namespace
}  // namespace attn::mesa_test
