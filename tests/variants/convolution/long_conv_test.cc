// Convolutions as long as the sequence: long_conv and hyena.
#include <gtest/gtest.h>

#include <vector>

#include "core/ops/ops.h"
#include "core/tensor/tensor.h"
#include "tests/variants/mixers.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"
#include "variants/convolution/fft.h"
#include "variants/reference/long_convolutions.h"

namespace attn::long_conv_test {
namespace {

// long_conv against the sum written out, by sums and by Fourier transforms; the identity of a delta
// filter; shifts; and the trap of a transform that wraps around.

using namespace mixers;

const std::vector<std::string> kForms = {"direct", "fft", "auto"};

// The usual cases, and more channels than a strip of 16 holds.
std::vector<Case> strips(bool causal) {
  std::vector<Case> all = cases(causal);
  all.push_back({2, 2, 19, 20, causal, {19, 7}});
  return all;
}

TEST(LongConv, EqualsTheSumOverDistances) {
  for (const std::string& form : kForms)
    for (const bool causal : {false, true})
      for (const Case& at : strips(causal))
        expect_twin("long_conv", at, {{"form", form}}, [&](const auto& x, const auto& w) {
          return oracle::long_convolution(x, w[0], w[1], causal, {at.lengths});
        });
}

// Two kinds of lengths: one that is transformed as it is, and one that zeros are added to.
TEST(LongConv, BothFormsAgreeBeyondFourThousandPositions) {
  for (const auto& [n, causal] : {std::pair<int64_t, bool>{4800, false}, {5001, true}}) {
    const Case at{1, 1, n, 3, causal, {}};
    const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
    std::vector<Tensor> out, gradient;
    for (const std::string& form : {kForms[0], kForms[1]}) {
      const auto mixer = build("long_conv", at, {{"form", form}});
      out.push_back(as_mixer(*mixer)->mix(Var(x), at.mask()).value());
      as_mixer(*mixer)->mix(Var(x, true), at.mask()).backward(out.front());
      gradient.push_back(mixer->weights()[0].value.grad());
    }
    EXPECT_LE(distance(out[1], out[0]), kIsDouble ? 1e-13 : 2e-6) << n;
    EXPECT_LE(bridge::relative_error(gradient[1], bridge::array_of(gradient[0]).x),
              kIsDouble ? 1e-13 : 5e-6)
        << n;
  }
}

TEST(LongConv, ADeltaFilterIsTheIdentity) {
  for (const bool causal : {false, true}) {
    const Case at{2, 2, 300, 3, causal, {}};
    const auto mixer = build("long_conv", at, {});
    const Var filter = mixer->weights()[0].value, skip = mixer->weights()[1].value;
    const Tensor delta = Tensor::zeros(filter.shape());
    std::fill_n(delta.data() + (causal ? 0 : 299) * 6, 6, real(1));
    filter.set_value(delta), skip.set_value(Tensor::zeros(skip.shape()));
    const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
    EXPECT_LE(distance(as_mixer(*mixer)->mix(Var(x), at.mask()).value(), x), 20 * kEpsilon);
  }
}

// The first rows of a shorter input are the same: the filter is of distances, and nothing wraps
// around from the end.
TEST(LongConv, RegressionTheEndDoesNotWrapAroundToTheBeginning) {
  const Case at{1, 1, 512, 4, true, {}};
  const auto mixer = build("long_conv", at, {{"form", std::string("fft")}});
  const Tensor x = Tensor::normal(at.rows(), rng(3, "x"));
  const Tensor all = as_mixer(*mixer)->mix(Var(x), at.mask()).value();
  for (const int64_t n : {1, 100, 511}) {
    const Tensor first = as_mixer(*mixer)->mix(Var(rows_of(x, 0, 0, n)), at.mask()).value();
    EXPECT_LE(distance(first, rows_of(all, 0, 0, n)), 20 * kEpsilon) << n;
  }
  // Zeros in front move every row by their number.
  const Tensor moved = Tensor::zeros(at.rows());
  std::copy_n(x.data(), 412 * 4, moved.data() + 100 * 4);
  const Tensor out = as_mixer(*mixer)->mix(Var(moved), at.mask()).value();
  EXPECT_LE(distance(rows_of(out, 0, 100, 512), rows_of(all, 0, 0, 412)), 20 * kEpsilon);
}

TEST(LongConv, TheDecoderHoldsEveryRow) {
  const auto mixer = build("long_conv", {1, 2, 400, 8, true, {}}, {});
  EXPECT_EQ(mixer->decoder(3, 400)->state_bytes(), 3 * 400 * 16 * int64_t{sizeof(real)});
  EXPECT_EQ(mixer->decoder(3, 40)->state_bytes(), 3 * 40 * 16 * int64_t{sizeof(real)});
}

TEST(LongConv, RefusesWhatItsFilterDoesNotReach) {
  const Case at{1, 1, 10, 4, true, {}};
  const auto mixer = build("long_conv", at, {});
  EXPECT_THROW(as_mixer(*mixer)->mix(Var(Tensor::zeros({1, 11, 4})), at.mask()), Error);
  EXPECT_THROW(mixer->decoder(1, 11), Error);
}

// hyena against its equations in double, with the gradients of the filter's network; gates alone;
// and the trap of a filter that changes with the length at hand.

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
        std::vector<oracle::Array> arrays = bridge::arrays_of(inputs);
        EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, 50, causal, lengths).x),
                  50 * kEpsilon)
            << form;
        const Tensor seed = bridge::normal(out.shape(), "seed");
        out.backward(seed);
        std::vector<Tensor> grads = bridge::grads_of(vars);
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
}  // namespace attn::long_conv_test
