// hyena against its equations in double, with the gradients of the filter's network; gates alone;
// and the trap of a filter that changes with the length at hand.
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"
#include "variants/reference/long_convolutions.h"

namespace attn::hyena_test {
namespace {

using Given = std::map<std::string, ParamValue>;

std::unique_ptr<Attention> build(int64_t longest, bool causal, const Given& given) {
  return find_variant("hyena").build({2, 3, longest, causal, 3, {}}, given);
}

oracle::Array twin(const std::vector<oracle::Array>& x, int64_t longest, bool causal,
                   const std::vector<int64_t>& lengths) {
  return oracle::gated_convolution(x[0], x[1], x[2], {x.begin() + 3, x.end()}, longest - 1, causal,
                                   {lengths});
}

TEST(Hyena, EqualsItsEquations) {
  for (const std::string form : {"direct", "fft"})
    for (const bool causal : {false, true})
      for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {33, 8}}) {
        const auto hyena =
            build(50, causal, {{"form", form}, {"bands", int64_t{3}}, {"hidden", int64_t{7}}});
        std::vector<Tensor> inputs;
        for (const char* name : {"q", "k", "v"})
          inputs.push_back(bridge::normal({2, 2, 40, 3}, name));
        for (const size_t which : {1, 2})
          bridge::fill_padding(inputs[which], lengths, bridge::kNaN);
        std::vector<Var> vars;
        for (const Tensor& t : inputs) vars.emplace_back(t, true);
        for (const Weight& weight : hyena->weights()) {
          const Tensor drawn = bridge::normal(weight.value.shape(), weight.name.c_str(), 0.7);
          weight.value.set_value(drawn);
          inputs.push_back(drawn.shape().rank() == 1 ? drawn.reshaped({1, drawn.size()}) : drawn);
          vars.push_back(weight.value);
        }
        const Var out = hyena->forward(vars[0], vars[1], vars[2], {causal, lengths});
        std::vector<oracle::Array> arrays;
        for (const Tensor& t : inputs) arrays.push_back(bridge::array_of(t));
        EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, 50, causal, lengths).x),
                  50 * kEpsilon)
            << form;
        const Tensor seed = bridge::normal(out.shape(), "seed");
        out.backward(seed);
        std::vector<Tensor> grads;
        for (const Var& var : vars) grads.push_back(var.grad());
        bridge::expect_gradients(inputs, grads, seed, [&](const std::vector<oracle::Array>& x) {
          return twin(x, 50, causal, lengths);
        });
      }
}

// Without a filter and with a skip of 1, what is left of the unit is its gates.
TEST(Hyena, WithoutAFilterTheGatesRemain) {
  const auto hyena = build(300, true, {});
  for (const Weight& weight : hyena->weights())
    if (weight.name == "out" || weight.name == "skip")
      weight.value.set_value(Tensor::full(weight.value.shape(), weight.name == "skip" ? 1 : 0));
  const Tensor q = bridge::normal({1, 2, 300, 3}, "q"), k = bridge::normal({1, 2, 300, 3}, "k"),
               v = bridge::normal({1, 2, 300, 3}, "v");
  std::vector<double> want;
  for (int64_t i = 0; i < q.size(); ++i) want.push_back(double(q[i]) * double(k[i]) * double(v[i]));
  const Tensor out = hyena->forward(Var(q), Var(k), Var(v), {true, {}}).value();
  EXPECT_LE(bridge::relative_error(out, want), 20 * kEpsilon);
}

// What is built for 300 positions answers 90 of them as it answers them among 300.
TEST(Hyena, RegressionTheFilterDoesNotFollowTheLengthAtHand) {
  const auto hyena = build(300, true, {});
  const Tensor x = bridge::normal({1, 2, 300, 3}, "x"), first({1, 2, 90, 3});
  const Tensor all = hyena->forward(Var(x), Var(x), Var(x), {true, {}}).value();
  std::vector<double> want;
  for (int64_t h = 0; h < 2; ++h) {
    std::copy_n(x.data() + h * 900, 270, first.data() + h * 270);
    for (int64_t i = 0; i < 270; ++i) want.push_back(static_cast<double>(all[h * 900 + i]));
  }
  const Tensor out = hyena->forward(Var(first), Var(first), Var(first), {true, {}}).value();
  EXPECT_LE(bridge::relative_error(out, want), 50 * kEpsilon);
}

TEST(Hyena, RefusesWhatItWasNotBuiltFor) {
  const auto hyena = build(10, true, {});
  const Var x(Tensor::zeros({1, 2, 11, 3}));
  EXPECT_THROW(hyena->forward(x, x, x, {true, {}}), Error);
}

}  // namespace
}  // namespace attn::hyena_test
