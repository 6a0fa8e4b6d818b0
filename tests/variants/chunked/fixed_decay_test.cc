// lightning against its parallel form in double, and hgrn2 against its equations and gla: outputs
// and gradients.
#include <array>
#include <cmath>

#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"

namespace attn::fixed_decay_test {
namespace {

using stepwise::Array;
using stepwise::Index;

std::unique_ptr<Attention> build(const char* name, int64_t heads, int64_t dim,
                                 const std::map<std::string, ParamValue>& given = {}) {
  return find_variant(name).build({heads, dim, 100, true, 3, {}}, given);
}

std::vector<Array> arrays_of(const std::vector<Tensor>& tensors) {
  std::vector<Array> arrays;
  for (const Tensor& t : tensors) arrays.push_back(bridge::array_of(t));
  return arrays;
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
      EXPECT_LE(bridge::relative_error(out.value(), twin(arrays_of(x.all)).x), 50 * kEpsilon);
      const Tensor seed = bridge::normal(out.shape(), "seed");
      out.backward(seed);
      bridge::expect_gradients(x.all, x.grads(), seed, twin);
    }
}

Var answer(const Attention& variant, const std::vector<Var>& x,
           const std::vector<int64_t>& lengths = {}) {
  return variant.forward(x[0], x[1], x[2], {true, lengths}, std::array{x[3]});
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
      EXPECT_LE(bridge::relative_error(out.value(), twin(arrays_of(x.all)).x), 50 * kEpsilon);
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

}  // namespace
}  // namespace attn::fixed_decay_test
