// Linear attention with decays: fixed ones, those of retention and the learned gates of gla.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/variants/chunked/stepwise.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::decays_test {
namespace {

// lightning against its parallel form in double, and hgrn2 against its equations and gla: outputs
// and gradients.

using stepwise::answer;
using stepwise::Array;
using stepwise::Index;

std::unique_ptr<Attention> build(const char* name, int64_t heads, int64_t dim,
                                 const std::map<std::string, ParamValue>& given = {}) {
  return find_variant(name).build({heads, dim, 100, true, 3, {}}, given);
}

// ALiBi's slopes of 4 heads, and of 6: those of 4, then the first and third of 8.
const std::vector<double> kSlopes = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256, 1.0 / 2, 1.0 / 8};

TEST(Lightning, IsItsParallelForm) {
  for (const int64_t heads : {4, 6})
    for (const double factor : {1.0, 0.25, 0.0}) {
      const auto lightning = build("lightning", heads, 5, {{"slope_factor", factor}});
      const stepwise::Drawn x({2, heads, 90, 5}, {}, {});
      const auto twin = [&](const std::vector<Array>& a) {
        return oracle::weighted_sum(
            a[0], a[2], {.causal = true}, [&](Index b, Index h, Index i, Index j) {
              const double slope = factor * kSlopes[static_cast<size_t>(h)];
              return std::exp(-slope * static_cast<double>(i - j)) / std::sqrt(5.0) *
                     oracle::dot(a[0].row(b, h, i), a[1].row(b, h, j));
            });
      };
      const Var out = lightning->forward(x.vars[0], x.vars[1], x.vars[2], {true, {}});
      EXPECT_LE(bridge::relative_error(out.value(), twin(bridge::arrays_of(x.all)).x),
                50 * kEpsilon);
      const Tensor seed = bridge::normal(out.shape(), "seed");
      out.backward(seed);
      bridge::expect_gradients(x.all, x.grads(), seed, twin);
    }
}

double decay_of(double gate, double gamma) { return gamma + (1 - gamma) / (1 + std::exp(-gate)); }

TEST(Hgrn2, EqualsItsEquations) {
  for (const double gamma : {0.0, 0.3})
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {17, 8}}) {
      const auto hgrn2 = build("hgrn2", 2, 5, {{"lower_bound", gamma}});
      stepwise::Drawn x({2, 2, 17, 5}, {5}, lengths);
      const auto twin = [&](const std::vector<Array>& a) {
        Array keys = a[3];
        for (double& number : keys.x) number = 1 - decay_of(number, gamma);
        return stepwise::outputs(
            a[0], keys, a[2], 1 / std::sqrt(5.0),
            [&](Index b, Index h, Index t, Index c) {
              return decay_of(a[3].at(b, h, t, c), gamma);
            },
            stepwise::one, lengths);
      };
      const Var out = answer(*hgrn2, x.vars, lengths);
      EXPECT_LE(bridge::relative_error(out.value(), twin(bridge::arrays_of(x.all)).x),
                50 * kEpsilon);
      const Tensor seed = bridge::normal(out.shape(), "seed");
      out.backward(seed);
      EXPECT_FALSE(x.vars[1].grad().defined()) << "keys are not read";
      const std::vector<Tensor> read = {x.all[0], x.all[2], x.all[3]};
      const std::vector<Tensor> grads = {x.vars[0].grad(), x.vars[2].grad(), x.vars[3].grad()};
      bridge::expect_gradients(read, grads, seed, [&](const std::vector<Array>& moved) {
        return twin({moved[0], moved[0], moved[1], moved[2]});
      });
    }
}

// Keys 1 - σ(x) of the gate x = 100 are 0, and of -100 they are 1 and nothing is kept.
TEST(Hgrn2, IsGlaWithTheForgottenShareAsKey) {
  const auto hgrn2 = build("hgrn2", 2, 4), gla = build("gla", 2, 4, {{"temperature", 1.0}});
  const stepwise::Drawn x({1, 2, 90, 4}, {4}, {}, 3);
  x.all[3][5] = 100, x.all[3][11] = -100;
  const Tensor keys(x.all[1].shape());
  for (int64_t i = 0; i < keys.size(); ++i) keys[i] = 1 / (1 + std::exp(x.all[3][i]));
  const Tensor want = answer(*gla, {x.vars[0], Var(keys), x.vars[2], x.vars[3]}).value();
  EXPECT_LE(bridge::relative_error(answer(*hgrn2, x.vars).value(), bridge::array_of(want).x),
            50 * kEpsilon);
}

// With γ = 1 everything is kept and nothing written.
TEST(Hgrn2, ABoundOfOneKeepsTheStateEmpty) {
  const auto hgrn2 = build("hgrn2", 1, 4, {{"lower_bound", 1.0}});
  const stepwise::Drawn x({1, 1, 30, 4}, {4}, {});
  const Tensor out = answer(*hgrn2, x.vars).value();
  for (const real number : out.values()) EXPECT_EQ(number, 0);
}

// gla against its equations in double, with the gradients of queries, keys, values and gates; open
// gates; and where the gate acts: before the write.

std::unique_ptr<Attention> build_gla(int64_t heads, int64_t dim, int64_t len, double temperature) {
  return find_variant("gla").build({heads, dim, len, true, 3, {}}, {{"temperature", temperature}});
}

Array twin(const std::vector<Array>& x, double temperature, const std::vector<int64_t>& lengths) {
  const auto decay = [&](Index b, Index h, Index t, Index c) {
    return std::pow(1 / (1 + std::exp(-x[3].at(b, h, t, c))), 1 / temperature);
  };
  return stepwise::outputs(x[0], x[1], x[2], 1 / std::sqrt(static_cast<double>(x[0].dim)), decay,
                           stepwise::one, lengths);
}

TEST(Gla, EqualsItsEquations) {
  for (const double temperature : {16.0, 1.0})
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {17, 8}}) {
      const auto gla = build_gla(2, 5, 17, temperature);
      const stepwise::Drawn x({2, 2, 17, 5}, {5}, lengths);
      const Var out =
          gla->forward(x.vars[0], x.vars[1], x.vars[2], {true, lengths}, std::array{x.vars[3]});
      std::vector<Array> arrays = bridge::arrays_of(x.all);
      EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, temperature, lengths).x),
                50 * kEpsilon);
      const Tensor seed = bridge::normal(out.shape(), "seed");
      out.backward(seed);
      bridge::expect_gradients(x.all, x.grads(), seed, [&](const std::vector<Array>& moved) {
        return twin(moved, temperature, lengths);
      });
    }
}

// σ(100) = 1: nothing is forgotten, and the weights are q·k/√d of all earlier keys.
TEST(Gla, OpenGatesGiveUnnormalisedLinearAttention) {
  const auto gla = build_gla(2, 4, 30, 16);
  const stepwise::Drawn x({1, 2, 30, 4}, {4}, {});
  x.all[3].fill(100);
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]);
  const Array want = oracle::weighted_sum(q, bridge::array_of(x.all[2]), {.causal = true},
                                          [&](Index b, Index h, Index i, Index j) {
                                            return oracle::dot(q.row(b, h, i), k.row(b, h, j)) / 2;
                                          });
  const Var out = gla->forward(x.vars[0], x.vars[1], x.vars[2], {true, {}}, std::array{x.vars[3]});
  EXPECT_LE(bridge::relative_error(out.value(), want.x), 50 * kEpsilon);
}

// The gate of a position decays what was written before it, not what the position writes.
TEST(Gla, RegressionTheGateActsBeforeTheWrite) {
  const auto gla = build_gla(1, 3, 1, 16);
  const stepwise::Drawn x({1, 1, 1, 3}, {3}, {});
  const auto answer = [&](real gate) {
    x.all[3].fill(gate);
    return gla->forward(x.vars[0], x.vars[1], x.vars[2], {true, {}}, std::array{x.vars[3]}).value();
  };
  EXPECT_LE(bridge::relative_error(answer(-50), bridge::array_of(answer(50)).x), 20 * kEpsilon);
}

TEST(Gla, KeepsAConstantState) {
  const auto gla = build_gla(2, 8, 4096, 16);
  EXPECT_EQ(gla->decoder(3, 4096)->state_bytes(), 3 * 2 * 8 * 8 * int64_t{sizeof(real)});
  EXPECT_EQ(gla->decoder(3, 10)->state_bytes(), 3 * 2 * 8 * 8 * int64_t{sizeof(real)});
}

TEST(Gla, RefusesAGateThatDoesNotFit) {
  const auto gla = build_gla(2, 4, 8, 16);
  const Var x(Tensor::zeros({1, 2, 8, 4}));
  const auto message = [&](std::vector<Var> gates) -> std::string {
    return fault_of([&] { gla->forward(x, x, x, {true, {}}, gates); });
  };
  EXPECT_EQ(message({x}), "");
  EXPECT_EQ(message({}), "the variant reads 1 gates (decay); given are 0");
  EXPECT_EQ(message({Var(Tensor::zeros({1, 2, 8, 1}))}),
            "gate decay is [1, 2, 8, 1]; expected [1, 2, 8, 4]");
  const auto full = find_variant("full").build({2, 4, 8, true, 1, {}}, {});
  EXPECT_THROW(full->forward(x, x, x, {true, {}}, std::array{x}), Error);
}

// retention against its parallel form (eq. 5) in double: rotation, decays and normalisation written
// out pair by pair; causal even where the model is not.

std::unique_ptr<Attention> build_retention(int64_t heads, int64_t dim, int64_t max_len,
                                           bool causal) {
  return find_variant("retention").build({heads, dim, max_len, causal, 3, {}}, {});
}

// Σ_{j <= i} γ^(i-j)·(R_i·q_i)·(R_j·k_j)·v_j / √(d·Σ_{j <= i} γ^(i-j)). The rotated product depends
// on i - j alone: Σ over pairs of columns of Re((q·conj k)·e^(i·angle·(i - j))).
Array parallel_form(const std::vector<Array>& x) {
  const Array &q = x[0], &k = x[1];
  const double pairs = static_cast<double>(q.dim / 2);
  return oracle::weighted_sum(q, x[2], {true}, [&](Index b, Index h, Index i, Index j) {
    const double gamma = 1 - std::pow(2.0, -5.0 - static_cast<double>(h));
    double product = q.dim % 2 ? q.at(b, h, i, q.dim - 1) * k.at(b, h, j, q.dim - 1) : 0;
    for (Index c = 0; c + 1 < q.dim; c += 2) {
      const double share = pairs > 1 ? static_cast<double>(c / 2) / (pairs - 1) : 0;
      const double angle = static_cast<double>(i - j) * std::pow(10000.0, -share);
      const double q0 = q.at(b, h, i, c), q1 = q.at(b, h, i, c + 1);
      const double k0 = k.at(b, h, j, c), k1 = k.at(b, h, j, c + 1);
      product += (q0 * k0 + q1 * k1) * std::cos(angle) + (q0 * k1 - q1 * k0) * std::sin(angle);
    }
    const double sum = (1 - std::pow(gamma, static_cast<double>(i + 1))) / (1 - gamma);
    return product * std::pow(gamma, static_cast<double>(i - j)) /
           std::sqrt(sum * static_cast<double>(q.dim));
  });
}

TEST(Retention, IsItsParallelForm) {
  for (const int64_t dim : {1, 2, 5, 8})
    for (const bool causal : {false, true}) {
      const auto retention = build_retention(3, dim, 80, causal);
      const Shape shape{2, 3, 80, dim};
      const std::vector<Tensor> inputs = {bridge::normal(shape, "q"), bridge::normal(shape, "k"),
                                          bridge::normal(shape, "v")};
      const Var q(inputs[0], true), k(inputs[1], true), v(inputs[2], true);
      const Var out = retention->forward(q, k, v, {causal, {}});
      std::vector<Array> arrays = bridge::arrays_of(inputs);
      const double error = bridge::relative_error(out.value(), parallel_form(arrays).x);
      EXPECT_LE(error, 100 * kEpsilon);
      const Tensor seed = bridge::normal(shape, "seed");
      out.backward(seed);
      bridge::expect_gradients(inputs, {q.grad(), k.grad(), v.grad()}, seed, parallel_form);
    }
}

// Also beyond the length that the variant was built for.
TEST(Retention, LaterPositionsLeaveEarlierOnesAlone) {
  const auto retention = build_retention(2, 4, 20, true);
  const Tensor all = bridge::normal({1, 2, 90, 4}, "x");
  const NoGrad no_grad;
  const Tensor whole = retention->forward(Var(all), Var(all), Var(all), {true, {}}).value();
  const Tensor part({1, 2, 33, 4});  // longer than max_len, as the whole is
  for (int64_t h = 0; h < 2; ++h)
    std::copy_n(all.data() + h * 90 * 4, 33 * 4, part.data() + h * 33 * 4);
  const Tensor first = retention->forward(Var(part), Var(part), Var(part), {true, {}}).value();
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 33 * 4; ++i)
      EXPECT_NEAR(first[h * 33 * 4 + i], whole[h * 90 * 4 + i], 20 * kEpsilon);
}

}  // namespace
}  // namespace attn::decays_test
