// gmlp against its equations in double; the mixture across tiles; how it starts; a gate that is a
// mean; and the trap of a matrix that is not cut to the length at hand.
#include "core/ops/ops.h"
#include "tests/variants/mixers.h"
#include "variants/reference/units.h"
#include "variants/synthetic/position_mixture.h"

namespace attn::gmlp_test {
namespace {

using namespace mixers;

TEST(GMlp, EqualsItsEquations) {
  for (const bool causal : {false, true})
    for (const Case& at : cases(causal))
      if (at.len < 100)
        expect_twin("gmlp", at, {{"expansion", int64_t{2}}}, [&](const auto& x, const auto& w) {
          return oracle::spatial_gating(x, w, causal, {at.lengths});
        });
}

// Several tiles of 64 positions, of 64 columns and of 256 products, and a matrix that is cut.
TEST(GMlp, TheMixtureIsASumAcrossTiles) {
  constexpr int64_t kBatch = 2, kLen = 300, kCols = 70, kLongest = 310;
  const Tensor matrix = Tensor::normal({kLongest, kLongest}, rng(4, "matrix"), 0.1),
               rows = Tensor::normal({kBatch, kLen, kCols}, rng(5, "rows")),
               seed = Tensor::normal({kBatch, kLen, kCols}, rng(6, "seed"));
  for (const bool causal : {false, true}) {
    const Var w(matrix, true), x(rows, true);
    const Var out = position_mixture(w, x, causal);
    out.backward(seed);
    std::vector<double> mixed(static_cast<size_t>(rows.size())),
        of_rows = mixed, of_matrix(static_cast<size_t>(matrix.size()));
    for (int64_t b = 0; b < kBatch; ++b)
      for (int64_t i = 0; i < kLen; ++i)
        for (int64_t j = 0; j < (causal ? i + 1 : kLen); ++j)
          for (int64_t c = 0; c < kCols; ++c) {
            const int64_t at = (b * kLen + i) * kCols + c, from = (b * kLen + j) * kCols + c;
            const double by = static_cast<double>(matrix[i * kLongest + j]);
            mixed[static_cast<size_t>(at)] += by * static_cast<double>(rows[from]);
            of_rows[static_cast<size_t>(from)] += by * static_cast<double>(seed[at]);
            of_matrix[static_cast<size_t>(i * kLongest + j)] +=
                static_cast<double>(seed[at]) * static_cast<double>(rows[from]);
          }
    EXPECT_LE(bridge::relative_error(out.value(), mixed), 50 * kEpsilon) << causal;
    EXPECT_LE(bridge::relative_error(x.grad(), of_rows), 50 * kEpsilon) << causal;
    EXPECT_LE(bridge::relative_error(w.grad(), of_matrix), 50 * kEpsilon) << causal;
  }
}

Var named(const Attention& attention, const std::string& name) {
  for (const Weight& weight : attention.weights())
    if (weight.name == name) return weight.value;
  return {};
}

// With a matrix of zeros and a bias of ones the gate is 1: each position by itself.
TEST(GMlp, WithoutTheMixtureEachPositionIsByItself) {
  const Case at{1, 1, 20, 6, false, {}};
  const auto gmlp = build("gmlp", at, {});
  const Var spatial = named(*gmlp, "spatial");
  spatial.set_value(Tensor::zeros(spatial.shape()));
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Var half = slice(gelu(linear(Var(x), named(*gmlp, "in"), {})), 2, 0, 12);
  const Tensor want = linear(half, named(*gmlp, "out"), {}).value();
  EXPECT_LE(distance(as_mixer(*gmlp)->mix(Var(x)).value(), want), 20 * kEpsilon);
}

// All weights 1/n and no bias: the gate is the mean of the normalised half, the same everywhere.
TEST(GMlp, AConstantMatrixGatesByTheMean) {
  const Case at{1, 1, 20, 6, false, {}};
  const auto gmlp = build("gmlp", at, {});
  named(*gmlp, "spatial").set_value(Tensor::full({20, 20}, real(0.05)));
  named(*gmlp, "spatial_bias").set_value(Tensor::zeros({20, 1}));
  const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
  const Var hidden = gelu(linear(Var(x), named(*gmlp, "in"), {}));
  const Var mean = mean_positions(
      layer_norm(slice(hidden, 2, 12, 24), named(*gmlp, "gain"), named(*gmlp, "shift")), {});
  const Tensor want =
      linear(multiply(slice(hidden, 2, 0, 12), reshape(mean, {12})), named(*gmlp, "out"), {})
          .value();
  EXPECT_LE(distance(as_mixer(*gmlp)->mix(Var(x)).value(), want), 100 * kEpsilon);
}

// What is built for 30 positions takes 20, and refuses 31.
TEST(GMlp, RegressionTheMatrixIsCutToTheLength) {
  for (const bool causal : {false, true}) {
    const Case at{1, 1, 30, 6, causal, {}};
    const auto gmlp = build("gmlp", at, {});
    draw_weights(*gmlp);
    const Tensor x = Tensor::normal({1, 20, 6}, rng(3, "x"));
    std::vector<oracle::Array> weights;
    for (const Weight& weight : gmlp->weights())
      weights.push_back(bridge::array_of(flat(weight.value.value())));
    EXPECT_LE(
        bridge::relative_error(
            as_mixer(*gmlp)->mix(Var(x), at.mask()).value(),
            oracle::spatial_gating(bridge::array_of(with_one_head(x)), weights, causal, {}).x),
        50 * kEpsilon);
    EXPECT_THROW(as_mixer(*gmlp)->mix(Var(Tensor::zeros({1, 31, 6})), at.mask()), Error);
  }
}

}  // namespace
}  // namespace attn::gmlp_test
