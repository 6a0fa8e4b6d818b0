// gla against its equations in double, with the gradients of queries, keys, values and gates; open
// gates; and where the gate acts: before the write.
#include <algorithm>
#include <array>

#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"

namespace attn::gla_test {
namespace {

using stepwise::Array;
using stepwise::Index;

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
      std::vector<Array> arrays;
      for (const Tensor& t : x.all) arrays.push_back(bridge::array_of(t));
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
    try {
      gla->forward(x, x, x, {true, {}}, gates);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({x}), "");
  EXPECT_EQ(message({}), "the variant reads 1 gates (decay); given are 0");
  EXPECT_EQ(message({Var(Tensor::zeros({1, 2, 8, 1}))}),
            "gate decay is [1, 2, 8, 1]; expected [1, 2, 8, 4]");
  const auto full = find_variant("full").build({2, 4, 8, true, 1, {}}, {});
  EXPECT_THROW(full->forward(x, x, x, {true, {}}, std::array{x}), Error);
}

}  // namespace
}  // namespace attn::gla_test
