// Variants whose weights come from positions or single tokens: fnet, gmlp, synthesizer.
#include <gtest/gtest.h>

#include "core/ops/ops.h"
#include "tests/variants/mixers.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/reference/long_convolutions.h"
#include "variants/reference/synthesizer.h"
#include "variants/reference/units.h"
#include "variants/synthetic/position_mixture.h"

namespace attn::mixing_test {
namespace {

// fnet against the two transforms written out; what it does twice; one position; and the trap of
// padding that is transformed too.

using namespace mixers;

TEST(FNet, EqualsTheTransformsWrittenOut) {
  std::vector<Case> all = cases(false);
  all.push_back({2, 2, 19, 20, false, {19, 8}});  // more channels than a strip of 16 holds
  for (const Case& at : all)
    expect_twin("fnet", at, {}, [&](const auto& x, const auto&) {
      return oracle::fourier_mixing(x, {at.lengths});
    });
}

// n·d/2 times the input and the input with both axes reversed about their first element: the square
// of a cosine.
TEST(FNet, TwiceItIsAReflection) {
  const Case at{1, 2, 18, 5, false, {}};
  const auto fnet = build("fnet", at, {});
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Mixer& mixer = *as_mixer(*fnet);
  const Tensor twice = mixer.mix(mixer.mix(Var(x))).value();
  std::vector<double> want;
  for (int64_t i = 0; i < 18; ++i)
    for (int64_t c = 0; c < 10; ++c)
      want.push_back(90 * (static_cast<double>(x[i * 10 + c]) +
                           static_cast<double>(x[(18 - i) % 18 * 10 + (10 - c) % 10])));
  EXPECT_LE(bridge::relative_error(twice, want), 20 * kEpsilon);
}

TEST(FNet, RegressionPaddingIsNotTransformed) {
  const Case at{2, 1, 300, 4, false, {70, 300}};
  const auto fnet = build("fnet", at, {});
  const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
  const Tensor padded = as_mixer(*fnet)->mix(Var(x), at.mask()).value(),
               alone = as_mixer(*fnet)->mix(Var(rows_of(x, 0, 0, 70))).value();
  EXPECT_LE(distance(rows_of(padded, 0, 0, 70), alone), 20 * kEpsilon);
  const Tensor rest = rows_of(padded, 0, 70, 300);
  for (const real value : rest.values()) EXPECT_EQ(value, 0);
}

// gmlp against its equations in double; the mixture across tiles; how it starts; a gate that is a
// mean; and the trap of a matrix that is not cut to the length at hand.

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

// synthesizer against its four kinds of logits one by one, its limits, and what others get wrong:
// heads and rows reshaped into each other, and factors that forget the length.

using bridge::array_of;

const std::vector<std::string> kKinds = {"dense", "random", "factorized_dense",
                                         "factorized_random"};

TEST(Synthesizer, EqualsItsOracle) {
  for (const std::string& kind : kKinds)
    for (const int64_t length : {1, 2, 37})
      for (const bool causal : {false, true})
        for (const bool padded : {false, true}) {
          SCOPED_TRACE(testing::Message() << kind << " " << length << (causal ? " causal" : "")
                                          << (padded ? " padded" : ""));
          std::vector<int64_t> lengths;
          if (padded) lengths = {length / 2, length - 1};
          const bridge::TwinCase c{
              "synthesizer", {{"kind", kind}}, {2, 2, length, length, 5, causal}, lengths};
          bridge::expect_twin(c, [&](const Attention&, const Tensor&) {
            return [=](const std::vector<oracle::Array>& x) {
              return oracle::synthesizer(kind, x[0], x[2], x[3], x.back(), {causal, lengths});
            };
          });
        }
}

TEST(Synthesizer, AsLongRangeArenaEqualsItsOracle) {
  for (const int64_t length : {1, 2, 37, 80})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << length << (causal ? " causal" : "") << (padded ? " padded" : ""));
        std::vector<int64_t> lengths;
        if (padded) lengths = {length / 2, length - 1};
        const bridge::TwinCase c{"synthesizer",
                                 {{"as", std::string("lra")}},
                                 {2, 2, length, length, 5, causal},
                                 lengths};
        bridge::expect_twin(c, [&](const Attention&, const Tensor&) {
          return [=](const std::vector<oracle::Array>& x) {
            return oracle::synthesizer_lra(x[0], x[1], x[2], x[3], {causal, lengths});
          };
        });
      }
}

// A Synthesizer compares nothing; Long Range Arena's default adds its matrix to q·k/√d.
TEST(Synthesizer, RegressionLongRangeArenaComparesQueriesWithKeys) {
  const Tensor q = bridge::normal({1, 2, 20, 6}, "q"), k = bridge::normal({1, 2, 20, 6}, "k"),
               other = bridge::normal({1, 2, 20, 6}, "other");
  for (const std::string as : {"paper", "lra"}) {
    const auto attention =
        find_variant("synthesizer").build({2, 6, 20, false, 1, {}}, {{"as", as}});
    const NoGrad no_grad;
    const Tensor first = attention->forward(Var(q), Var(k), Var(k)).value(),
                 second = attention->forward(Var(q), Var(other), Var(k)).value();
    EXPECT_EQ(bridge::same_bits(first, second), as == "paper") << as;
  }
}

std::unique_ptr<Attention> built(const std::string& kind, int64_t length) {
  return find_variant("synthesizer").build({2, 6, length, false, 1, {}}, {{"kind", kind}});
}

TEST(Synthesizer, RandomLogitsSetToProductsAreSoftmaxAttention) {
  const Tensor q = bridge::normal({1, 2, 20, 6}, "q"), k = bridge::normal({1, 2, 20, 6}, "k"),
               v = bridge::normal({1, 2, 20, 6}, "v");
  const auto attention = built("random", 24);
  const oracle::Array a = array_of(q), b = array_of(k);
  const Tensor logits = Tensor::zeros({2, 24, 24});
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 20; ++i)
      for (int64_t j = 0; j < 20; ++j)
        logits[(h * 24 + i) * 24 + j] =
            static_cast<real>(oracle::dot(a.row(0, h, i), b.row(0, h, j)) / std::sqrt(6.0));
  attention->weights()[0].value.set_value(logits);
  const NoGrad no_grad;
  EXPECT_TRUE(bridge::relative_error(attention->forward(Var(q), Var(k), Var(v)).value(),
                                     oracle::softmax_attention(a, b, array_of(v), {}).x) <=
              100 * kEpsilon);
}

TEST(Synthesizer, WithoutLogitsItIsTheMean) {
  const Tensor x = bridge::normal({1, 2, 21, 6}, "x");
  for (const std::string& kind : kKinds) {
    const auto attention = built(kind, 21);
    for (const Weight& weight : attention->weights())
      weight.value.set_value(Tensor::zeros(weight.value.shape()));
    const oracle::Array a = array_of(x);
    const oracle::Array want =
        oracle::average(a, a, {}, [](int64_t, int64_t, int64_t, int64_t) { return 0.0; });
    const NoGrad no_grad;
    EXPECT_TRUE(bridge::relative_error(attention->forward(Var(x), Var(x), Var(x)).value(),
                                       want.x) <= 40 * kEpsilon)
        << kind;
  }
}

TEST(Synthesizer, AQueryMovesItsOwnRowOfItsOwnHead) {
  const Tensor v = bridge::normal({1, 2, 20, 6}, "v"), q = bridge::normal({1, 2, 20, 6}, "q"),
               other = q.clone();
  for (int64_t c = 0; c < 6; ++c) other[(20 + 3) * 6 + c] = 2;  // head 1, row 3
  for (const char* const kind : {"dense", "factorized_dense"}) {
    const auto attention = built(kind, 20);
    const NoGrad no_grad;
    const Tensor a = attention->forward(Var(q), Var(q), Var(v)).value(),
                 b = attention->forward(Var(other), Var(q), Var(v)).value();
    for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i] != b[i], i / 6 == 23) << kind << " " << i;
  }
}

TEST(Synthesizer, RefusesLongerSequences) {
  for (const std::string& kind : kKinds) {
    const auto attention = built(kind, 8);
    const Var x(Tensor::zeros({1, 2, 9, 6}));
    EXPECT_THROW(attention->forward(x, x, x), Error) << kind;
  }
}

}  // namespace
}  // namespace attn::mixing_test
