// performer: what sets Long Range Arena's form apart from the paper's; directions of hyperbolic
// features; trigonometric features, whose divisor has a floor.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/variants/features/kernel_twins.h"

namespace attn::performer_test {
namespace {

using namespace kernel_twins;

Tensor output(const std::string& as, uint64_t seed, double scale) {
  const auto attention = find_variant("performer").build({2, 6, 20, false, seed, {}}, {{"as", as}});
  const Tensor q = bridge::normal({1, 2, 20, 6}, "q", scale),
               k = bridge::normal({1, 2, 20, 6}, "k"), v = bridge::normal({1, 2, 20, 6}, "v");
  const NoGrad no_grad;
  return attention->forward(Var(q), Var(k), Var(v)).value();
}

// Its features hold nothing random, and its weights, unlike a softmax, hardly know how long a query
// is: relu(c·q) = c·relu(q) cancels in the ratio, up to the floor of 0.001.
TEST(Performer, RegressionLongRangeArenaHasNoRandomFeatures) {
  EXPECT_TRUE(find_variant("performer")
                  .build({2, 6, 20, false, 1, {}}, {{"as", std::string("lra")}})
                  ->weights()
                  .empty());
  for (const std::string as : {"paper", "lra"}) {
    EXPECT_EQ(bridge::same_bits(output(as, 1, 1), output(as, 2, 1)), as == "lra") << as;
    const double moved =
        bridge::relative_error(output(as, 1, 2), bridge::array_of(output(as, 1, 1)).x);
    EXPECT_EQ(moved < 0.01, as == "lra") << as << " " << moved;
  }
}

// ω and -ω: with x = -y a pair's features multiply to e^{-|x|²} exactly, whatever is drawn.
TEST(Performer, HyperbolicFeaturesAreOppositePairs) {
  const std::string hyperbolic = "hyperbolic";
  constexpr int64_t kFeatures = 6;
  const VariantInfo& info = find_variant("performer");
  const auto attention = info.build({2, 5, 20, false, 3, {}},
                                    {{"features", kFeatures}, {"features_kind", hyperbolic}});
  const Tensor omega = attention->weights()[0].value.value();
  ASSERT_EQ(omega.dim(1), kFeatures);
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t f = 0; f < kFeatures; f += 2)
      for (int64_t c = 0; c < 5; ++c) {
        const real* const row = omega.data() + (h * kFeatures + f) * 5;
        EXPECT_EQ(row[c], -row[5 + c]);
        EXPECT_NE(row[c], real(0));
      }
  const Params odd(info.name, info.params,
                   {{"features", int64_t{7}}, {"features_kind", hyperbolic}});
  EXPECT_NE(info.why_not({.head_dim = 5}, odd).value_or("").find("must be even"),
            std::string::npos);
}

const std::string kTrigonometric = "trigonometric";

struct Sums {
  double of_weights = 0, bound = 0;
  std::vector<double> of_values;
};

// Σ_j w_j, Σ_j e^{|y_j|²/2} and Σ_j w_j·v_j with w_j = e^{|y_j|²/2}·mean of cos(ω(x - y_j)), x and
// y over dim^¼: numerator and divisor without the query's own factor e^{|x|²/2}.
Sums sums_of(const std::vector<Array>& in, const Array& omega, int64_t b, int64_t h, int64_t i,
             int64_t keys) {
  Sums sums;
  sums.of_values.resize(static_cast<size_t>(in[2].dim));
  const std::vector<double> x = row_of(in[0], b, h, i);
  const double scale = std::pow(static_cast<double>(x.size()), -0.25);
  for (int64_t j = 0; j < keys; ++j) {
    const std::vector<double> y = row_of(in[1], b, h, j);
    std::vector<double> gap = x;
    for (size_t c = 0; c < gap.size(); ++c) gap[c] = scale * (x[c] - y[c]);
    double mean = 0;
    for (const double angle : times(omega, h, gap))
      mean += std::cos(angle) / static_cast<double>(omega.len);
    const double largest = std::exp(scale * scale * product(y, y) / 2);
    sums.of_weights += largest * mean;
    sums.bound += largest;
    for (int64_t c = 0; c < in[2].dim; ++c)
      sums.of_values[static_cast<size_t>(c)] += largest * mean * in[2].at(b, h, j, c);
  }
  return sums;
}

// How many queries a floor divides, and how many their weights.
struct Divided {
  int64_t by_floor = 0, by_weights = 0;
};

Array floored_ratio(const std::vector<Array>& in, const Array& omega, const Sizes& s,
                    Divided* divided = nullptr) {
  Array out(in[0].batch, in[0].heads, in[0].len, in[2].dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t i = 0; i < out.len; ++i) {
        int64_t keys = s.lengths.empty() ? s.length : s.lengths[static_cast<size_t>(b)];
        if (s.causal) keys = std::min(keys, i + 1);
        const Sums sums = sums_of(in, omega, b, h, i, keys);
        const bool floored = sums.of_weights < 0.1 * sums.bound;
        if (divided) ++(floored ? divided->by_floor : divided->by_weights);
        for (int64_t c = 0; keys > 0 && c < out.dim; ++c)
          out.at(b, h, i, c) = sums.of_values[static_cast<size_t>(c)] /
                               (floored ? 0.1 * sums.bound : sums.of_weights);
      }
  return out;
}

// Keys and queries of N(0, 1) in 5 dimensions are where about half of the divisors are floors.
TEST(TrigonometricPerformer, EqualsItsTwinOnBothSidesOfTheFloor) {
  for (const int64_t features : {30, 31})
    for (const Sizes& s : sizes()) {
      SCOPED_TRACE(testing::Message() << s.length << (s.causal ? " causal" : "")
                                      << (s.lengths.empty() ? "" : " padded"));
      const AttentionShape shape{.batch = 2,
                                 .heads = 2,
                                 .q_len = s.length,
                                 .kv_len = s.length,
                                 .head_dim = 5,
                                 .causal = s.causal};
      Divided divided;
      bridge::expect_twin({"performer",
                           {{"features", features}, {"features_kind", kTrigonometric}},
                           shape,
                           s.lengths,
                           1,
                           1e-6},  // a step that moves no divisor across the floor
                          [&](const Attention& attention, const Tensor&) -> bridge::Twins {
                            const Array omega =
                                bridge::array_of(attention.weights()[0].value.value());
                            EXPECT_EQ(omega.len, (features + 1) / 2);
                            return [&divided, omega, s](const std::vector<Array>& x) {
                              return floored_ratio(x, omega, s, &divided);
                            };
                          });
      EXPECT_TRUE(s.length == 1 || divided.by_floor > 0);
      EXPECT_TRUE(s.length == 1 || divided.by_weights > 0);
    }
}

// In 64 dimensions a mean cosine of N(0, 1) rows is about e^-8, below the noise of 256 features:
// sums of weights have either sign and can be near 0. In the first column of the values are ones,
// so that outputs there are the divisor's share that weights make up.
TEST(TrigonometricPerformer, OutputsStayBoundedWhereTheSignOfTheSumIsRandom) {
  constexpr int64_t n = 300, dim = 64;
  const auto attention = find_variant("performer")
                             .build({1, dim, n, false, 1, {}}, {{"features_kind", kTrigonometric}});
  const Tensor q = bridge::normal({1, 1, n, dim}, "q"), k = bridge::normal({1, 1, n, dim}, "k"),
               v = bridge::normal({1, 1, n, dim}, "v");
  for (int64_t j = 0; j < n; ++j) v[j * dim] = 1;
  double largest_value = 0, largest = 0, unfloored = 0;
  for (const real value : v.values())
    largest_value = std::max(largest_value, std::abs(static_cast<double>(value)));
  const NoGrad no_grad;
  const Tensor out = attention->forward(Var(q), Var(k), Var(v)).value();
  int64_t negative = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto share = static_cast<double>(out[i * dim]);
    EXPECT_LT(share, 1) << "the floor does not divide row " << i;
    negative += share < 0;
    for (int64_t c = 0; c < dim; ++c) {
      const double value = std::abs(static_cast<double>(out[i * dim + c]));
      largest = std::max(largest, value);
      unfloored = std::max(unfloored, value / std::abs(share));
    }
  }
  EXPECT_GT(negative, n / 4);
  EXPECT_LT(negative, 3 * n / 4);
  EXPECT_LE(largest, largest_value);  // weights add up to 10·largest_value at most
  EXPECT_GT(unfloored, 10 * largest_value);
}

// Each head is a draw. A far key, whose value is 0 and whose scale outweighs the others, keeps the
// divisor at its floor, a known number: outputs tell the sum of weights. Lemmas 1 and 2 of the
// paper: it is exp(q·k/√d) in the mean, with a deviation that vanishes where q = k.
TEST(TrigonometricPerformer, NumeratorsAreUnbiasedWithTheDeviationOfTheLemma) {
  constexpr int64_t heads = 400, dim = 4, keys = 4, features = 2048;
  const double x[dim] = {0.9, -0.5, 0.7, 0.3};  // over dim^¼
  const double y[keys][dim] = {
      {0.9, -0.5, 0.7, 0.3}, {-0.9, 0.5, -0.7, -0.3}, {0.2, 0.8, 0.5, -0.6}, {-2, 2, -2, 2}};
  const double scale = std::pow(static_cast<double>(dim), -0.25);
  const Tensor q({1, heads, 1, dim}), k({1, heads, keys, dim});
  const Tensor v = Tensor::zeros({1, heads, keys, dim});
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t c = 0; c < dim; ++c) {
      q[h * dim + c] = static_cast<real>(x[c] / scale);
      for (int64_t j = 0; j < keys; ++j) {
        k[(h * keys + j) * dim + c] = static_cast<real>(y[j][c] / scale);
        v[(h * keys + j) * dim + c] = c == 3 || (c == j && j < 3);  // the last column: all keys
      }
    }
  const auto attention =
      find_variant("performer")
          .build(
              {heads, dim, keys, false, 2, {}},
              {{"features", features}, {"orthogonal", false}, {"features_kind", kTrigonometric}});
  const NoGrad no_grad;
  const Tensor out = attention->forward(Var(q), Var(k), Var(v)).value();
  const auto squares = [&](const double* a, const double* b, double sign) {
    double sum = 0;
    for (int64_t c = 0; c < dim; ++c) sum += (a[c] + sign * b[c]) * (a[c] + sign * b[c]);
    return sum;
  };
  const double zero[dim] = {};
  double floor = 0;
  for (int64_t j = 0; j < keys; ++j) floor += 0.1 * std::exp(squares(y[j], zero, 1) / 2);
  for (int64_t h = 0; h < heads; ++h)
    ASSERT_LT(static_cast<double>(out[h * dim + 3]), 1) << "the floor does not divide draw " << h;
  for (int64_t j = 0; j < 3; ++j) {
    const double of_query = std::exp(squares(x, zero, 1) / 2);
    double mean = 0, square = 0;
    for (int64_t h = 0; h < heads; ++h) {
      const double sum = static_cast<double>(out[h * dim + j]) * floor * of_query;
      mean += sum / heads;
      square += sum * sum / heads;
    }
    const double want =
        std::exp((squares(x, zero, 1) + squares(y[j], zero, 1) - squares(x, y[j], -1)) / 2);
    const double deviation = of_query * std::exp(squares(y[j], zero, 1) / 2) *
                             (1 - std::exp(-squares(x, y[j], -1))) / std::sqrt(features);
    EXPECT_NEAR(mean, want, 4 * deviation / std::sqrt(heads) + 1e4 * kEpsilon * want) << j;
    EXPECT_EQ(j == 0, deviation < 1e-12);
    if (j == 0) continue;
    // A deviation from 400 draws is itself within 4/√800 of it.
    EXPECT_NEAR(std::sqrt(std::max(square - mean * mean, 0.0)), deviation, 0.15 * deviation) << j;
  }
}

TEST(TrigonometricPerformer, ManyFeaturesOfSmallInputsApproachSoftmax) {
  const auto attention = find_variant("performer")
                             .build({2, 16, 60, true, 1, {}}, {{"features", int64_t{1} << 14},
                                                               {"features_kind", kTrigonometric}});
  const Tensor q = bridge::normal({1, 2, 60, 16}, "q", 0.25),
               k = bridge::normal({1, 2, 60, 16}, "k", 0.25),
               v = bridge::normal({1, 2, 60, 16}, "v");
  const Tensor got = attention->forward(Var(q), Var(k), Var(v), {true, {}}).value();
  const Array want =
      ratio({bridge::array_of(q), bridge::array_of(k), bridge::array_of(v)}, true, {},
            [](const auto& x, const auto& y, int64_t, int64_t) {
              return std::exp(product(x, y) / std::sqrt(static_cast<double>(x.size())));
            });
  EXPECT_LE(bridge::relative_error(got, want.x), 0.02);
}

TEST(TrigonometricPerformer, WeightsNeedNotBeConvexAndReluHasNone) {
  const VariantInfo& info = find_variant("performer");
  const std::string relu = "relu";
  const auto chosen = [&](const Choices& given) { return Params("performer", info.params, given); };
  EXPECT_TRUE(info.convex(chosen({}), true));
  EXPECT_FALSE(info.convex(chosen({{"features_kind", kTrigonometric}}), true));
  const AttentionShape shape{.batch = 1, .heads = 1, .q_len = 4, .kv_len = 4, .head_dim = 4};
  EXPECT_FALSE(info.why_not(shape, chosen({{"features_kind", kTrigonometric}})).has_value());
  EXPECT_TRUE(info.why_not(shape, chosen({{"features_kind", kTrigonometric}, {"kernel", relu}}))
                  .has_value());
}

}  // namespace
}  // namespace attn::performer_test
