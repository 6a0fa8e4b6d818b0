// Biases of distances against their formulas: slopes, buckets, every clamp, gradients of what is
// learned; equalities among them; models that decode with them.
#include "harness/model/distance_bias.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "harness/model/encoder.h"
#include "harness/model/encoder_decoder.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/distance_bias.h"
#include "variants/catalog.h"

namespace attn::distance_bias_test {
namespace {

double number(const Tensor& t, int64_t i) { return static_cast<double>(t[i]); }

void set(const Weight& weight, const std::vector<double>& values) {
  weight.value.set_value(Tensor::of(weight.value.shape(), values));
}

TEST(DistanceBias, SlopesOfEightAndOfSixHeads) {
  const std::vector<double> eight = slopes_of(8);
  for (int h = 0; h < 8; ++h) EXPECT_EQ(eight[static_cast<size_t>(h)], std::exp2(-h - 1));
  const std::vector<double> six = {1. / 4, 1. / 16, 1. / 64, 1. / 256, 1. / 2, 1. / 8};
  EXPECT_EQ(slopes_of(6), six);
  EXPECT_EQ(slopes_of(1), std::vector<double>{1. / 256});
  EXPECT_EQ(slopes_of(3), (std::vector<double>{1. / 16, 1. / 256, 1. / 4}));
}

// As T5's own table has them; powers of two begin a bucket.
TEST(DistanceBias, BucketsOfT5) {
  const std::map<int64_t, int64_t> past = {{-5, 0},   {0, 0},    {1, 1},    {15, 15}, {16, 16},
                                           {18, 16},  {19, 17},  {31, 21},  {32, 21}, {64, 26},
                                           {127, 31}, {128, 31}, {9999, 31}};
  for (const auto& [distance, bucket] : past)
    EXPECT_EQ(bucket_of(distance, true), bucket) << distance;
  const std::map<int64_t, int64_t> both = {{0, 0},   {7, 7},    {8, 8},    {11, 8},  {12, 9},
                                           {15, 9},  {16, 10},  {32, 12},  {63, 13}, {64, 14},
                                           {91, 15}, {128, 15}, {5000, 15}};
  for (const auto& [distance, bucket] : both) {
    EXPECT_EQ(bucket_of(distance, false), bucket) << distance;
    if (distance > 0) {
      EXPECT_EQ(bucket_of(-distance, false), bucket + 16) << -distance;
    }
  }
}

TEST(DistanceBias, AlibiGrowsWithTheDistanceOnBothSides) {
  const Tensor table = DistanceBias(Distances::alibi, 2, false, 1).table(3, 4).value();
  ASSERT_EQ(table.shape(), (Shape{2, 6}));
  for (int64_t t = 0; t < 6; ++t) {
    EXPECT_NEAR(number(table, t), -std::abs(t - 3.0) / 16, 1e-7);
    EXPECT_NEAR(number(table, 6 + t), -std::abs(t - 3.0) / 256, 1e-7);
  }
}

TEST(DistanceBias, KerpleWithPowerOneIsAlibi) {
  for (const int64_t heads : {2, 6}) {
    const DistanceBias kerple(Distances::kerple_power, heads, true, 1);
    set(kerple.weights()[0], std::vector<double>(static_cast<size_t>(heads), 1));
    std::vector<double> slopes = slopes_of(heads);
    for (double& slope : slopes) slope = std::max(slope, 0.01);  // the floor of a
    set(kerple.weights()[1], slopes);
    const Tensor got = kerple.table(40, 40).value();
    const Tensor alibi = DistanceBias(Distances::alibi, heads, true, 1).table(40, 40).value();
    for (int64_t h = 0; h < heads; ++h) {
      if (slopes[static_cast<size_t>(h)] != slopes_of(heads)[static_cast<size_t>(h)]) continue;
      for (int64_t t = h * 79; t < (h + 1) * 79; ++t)
        EXPECT_NEAR(number(got, t), number(alibi, t), 1e-5 * std::abs(number(alibi, t)));
    }
  }
}

double formula(Distances kind, double p, double a, double r) {
  if (kind == Distances::kerple) return -p * std::log(1 + a * r);
  return r == 0 ? 0 : -a * std::exp(p * std::log(r));
}

// One head inside the range, others at each end of it.
TEST(DistanceBias, KerpleIsItsFormulaWithinItsRange) {
  for (const Distances kind : {Distances::kerple, Distances::kerple_power}) {
    const DistanceBias bias(kind, 4, true, 1);
    const std::array<double, 4> p = {1.3, 3, 0.001, -1}, a = {0.4, 0.5, 0.002, -7};
    set(bias.weights()[0], {p.begin(), p.end()});
    set(bias.weights()[1], {a.begin(), a.end()});
    const Tensor table = bias.table(1, 200).value();
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t t = 0; t < 200; ++t) {
        double power = std::max(p[static_cast<size_t>(h)], 0.01);
        if (kind == Distances::kerple_power) power = std::min(power, 2.0);
        const double want = formula(kind, power, std::max(a[static_cast<size_t>(h)], 0.01),
                                    199.0 - static_cast<double>(t));
        EXPECT_NEAR(number(table, h * 200 + t), want, 1e-5 * std::abs(want) + 1e-12);
      }
  }
}

TEST(DistanceBias, GradientsOfKerpleEqualDifferences) {
  for (const Distances kind : {Distances::kerple, Distances::kerple_power})
    for (const double p : {0.02, 0.7, 1.9})
      for (const double a : {0.02, 0.6, 3.0}) {
        const DistanceBias bias(kind, 1, true, 1);
        set(bias.weights()[0], {p});
        set(bias.weights()[1], {a});
        const Var table = bias.table(20, 30);
        const Tensor seed = bridge::normal(table.shape(), "seed");
        table.backward(seed);
        const auto total = [&](double of_p, double of_a) {
          double sum = 0;
          for (int64_t t = 0; t < 49; ++t)
            sum +=
                number(seed, t) * formula(kind, of_p, of_a, std::abs(static_cast<double>(t) - 29));
          return sum;
        };
        const double step = 1e-6;
        const double to_p = (total(p + step, a) - total(p - step, a)) / (2 * step),
                     to_a = (total(p, a + step) - total(p, a - step)) / (2 * step);
        const double allowed = kIsDouble ? 1e-6 : 1e-4;
        EXPECT_NEAR(number(bias.weights()[0].value.grad(), 0), to_p,
                    allowed * (1 + std::abs(to_p)));
        EXPECT_NEAR(number(bias.weights()[1].value.grad(), 0), to_a,
                    allowed * (1 + std::abs(to_a)));
      }
}

// Outside its range a number has the gradient of the range's end where a step leads back, else 0.
TEST(DistanceBias, NumbersOutsideTheirRangeFindBack) {
  for (const bool up : {false, true}) {
    const DistanceBias bias(Distances::kerple_power, 1, true, 1);
    set(bias.weights()[0], {3});
    set(bias.weights()[1], {0.001});
    const Var table = bias.table(1, 5);
    // Biases fall as p and a grow: a loss that grows with biases has gradients below 0.
    table.backward(Tensor::full(table.shape(), up ? 1 : -1));
    const double to_p = number(bias.weights()[0].value.grad(), 0),
                 to_a = number(bias.weights()[1].value.grad(), 0);
    const double at_end = 0.01 * (4 * std::log(2) + 9 * std::log(3) + 16 * std::log(4));
    EXPECT_NEAR(to_p, up ? 0 : at_end, 1e-5);
    EXPECT_NEAR(to_a, up ? -30 : 0, 1e-4);
  }
}

TEST(DistanceBias, GradientsOfT5SumOverItsBuckets) {
  for (const bool causal : {false, true}) {
    const DistanceBias bias(Distances::t5, 3, causal, 1);
    const Var table = bias.table(150, 200);
    const Tensor seed = bridge::normal(table.shape(), "seed");
    table.backward(seed);
    std::vector<double> want(32 * 3, 0.0);
    for (int64_t h = 0; h < 3; ++h)
      for (int64_t t = 0; t < 349; ++t) {
        const int64_t bucket = bucket_of(199 - t, causal);
        want[static_cast<size_t>(bucket * 3 + h)] += number(seed, h * 349 + t);
        EXPECT_EQ(table.value()[h * 349 + t], bias.weights()[0].value.value()[bucket * 3 + h]);
      }
    EXPECT_LE(bridge::relative_error(bias.weights()[0].value.grad(), want), 10 * kEpsilon);
  }
}

TEST(DistanceBias, ThePastIsTheTableOfTheLastQuery) {
  for (const Distances kind :
       {Distances::alibi, Distances::t5, Distances::kerple, Distances::kerple_power}) {
    const DistanceBias bias(kind, 2, true, 1);
    const Tensor past = bias.past(30), table = bias.table(30, 30).value();
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t r = 0; r < 30; ++r) EXPECT_EQ(past[h * 30 + r], table[h * 59 + 29 - r]);
  }
}

// A table of zeros changes nothing.
TEST(DistanceBias, OfZerosLeavesTheAttention) {
  for (const char* name : {"full", "truncated"}) {
    const auto attention = find_variant(name).build({2, 16, 12, true, 3, {}}, {});
    ASSERT_TRUE(as_distance_biased(*attention)) << name;
    const Var q(bridge::normal({2, 2, 12, 16}, "q")), k(bridge::normal({2, 2, 12, 16}, "k")),
        v(bridge::normal({2, 2, 12, 16}, "v"));
    const Mask mask{true, {12, 5}};
    const Tensor biased = as_distance_biased(*attention)
                              ->biased_forward(q, k, v, mask, Var(Tensor::zeros({2, 23})))
                              .value();
    EXPECT_TRUE(bridge::same_bits(biased, attention->forward(q, k, v, mask).value()));
  }
}

TEST(DistanceBias, ChecksItsArgumentsAsAnAttentionDoes) {
  const Var q(bridge::normal({2, 2, 12, 16}, "q")), table(Tensor::zeros({2, 23}));
  for (const char* name : {"full", "truncated"}) {
    const auto attention = find_variant(name).build({2, 16, 12, true, 3, {}}, {});
    const auto given = [&](const Mask& mask) {
      as_distance_biased(*attention)->biased_forward(q, q, q, mask, table);
    };
    EXPECT_NO_THROW(given({true, {12, 5}}));
    EXPECT_THROW(given({false, {}}), Error);
    EXPECT_THROW(given({true, {12}}), Error);
    EXPECT_THROW(given({true, {12, 13}}), Error);
    Mask mask{true, {}};
    mask.edges = std::make_shared<const Edges>(Edges{std::vector<int64_t>(25, 0), {}});
    EXPECT_THROW(given(mask), Error);
  }
}

// Rows of logits from states, one token at a time, as of the whole output: a key's distance is
// counted round the ring of a window, and for query heads that share keys.
TEST(DistanceBias, ModelsDecodeWithIt) {
  constexpr int64_t kSize = 2, kOutputs = 11;
  for (const Positions positions :
       {Positions::alibi, Positions::t5, Positions::kerple, Positions::kerple_power})
    for (const std::string variant : {"full", "truncated"}) {
      EncoderDecoderConfig config{.outputs = kOutputs, .exact = &find_variant("full")};
      config.model = {.layer = {.variant = &find_variant(variant),
                                .width = 16,
                                .heads = 4,
                                .kv_heads = 2,
                                .feed_forward = 24},
                      .layers = 2,
                      .vocab = 9,
                      .length = 7,
                      .classes = 6,
                      .positions = positions,
                      .seed = 3};
      if (variant == "truncated") config.model.layer.variant_params = {{"window", int64_t{3}}};
      const EncoderDecoder model(config);
      std::set<std::string> names;
      for (const Weight& weight : model.weights()) EXPECT_TRUE(names.insert(weight.name).second);
      EXPECT_EQ(names.contains("decoder.positions.buckets"), positions == Positions::t5);
      EXPECT_EQ(names.contains("encoder.positions.p"),
                positions == Positions::kerple || positions == Positions::kerple_power);
      Batch batch{.size = kSize, .length = 7, .lengths = {7, 4}};
      Rng random = rng(4, "tokens");
      for (int64_t i = 0; i < kSize * 7; ++i)
        batch.tokens.push_back(static_cast<int32_t>(random.between(1, 8)));
      std::vector<int32_t> inputs;
      for (int64_t i = 0; i < kSize * (kOutputs + 1); ++i)
        inputs.push_back(static_cast<int32_t>(random.between(0, 5)));
      const NoGrad no_grad;
      const EncoderDecoder::Memory memory = model.encode(batch);
      const Tensor all = model.decode(memory, inputs).value();
      EncoderDecoder::States states = model.start(memory, kOutputs);
      for (int64_t step = 0; step <= kOutputs; ++step) {
        std::vector<int32_t> tokens;
        for (int64_t b = 0; b < kSize; ++b)
          tokens.push_back(inputs[static_cast<size_t>(b * (kOutputs + 1) + step)]);
        const Tensor one = model.step(memory, states, tokens);
        for (int64_t i = 0; i < one.size(); ++i)
          ASSERT_NEAR(number(one, i), number(all, (i / 7 * (kOutputs + 1) + step) * 7 + i % 7),
                      1000 * static_cast<double>(kEpsilon))
              << variant << " step " << step;
      }
    }
}

// The order of tokens reaches the logits, and gradients every learned number of the positions.
TEST(DistanceBias, AnEncoderReadsTheOrderAndLearnsIt) {
  for (const Positions positions : {Positions::none, Positions::alibi, Positions::t5,
                                    Positions::kerple, Positions::kerple_power}) {
    ModelConfig config{
        .layer = {.variant = &find_variant("full"), .width = 16, .heads = 2, .feed_forward = 8},
        .layers = 2,
        .vocab = 9,
        .length = 6,
        .classes = 3,
        .positions = positions,
        .seed = 3};
    const Encoder model(config);
    Batch batch{.size = 1, .length = 6, .tokens = {1, 2, 3, 4, 5, 6}};
    const Var before = model.forward(batch);
    before.backward(bridge::normal(before.shape(), "seed"));
    for (const Weight& weight : model.weights())
      if (weight.name.starts_with("positions.")) {
        EXPECT_GT(bridge::norm(bridge::array_of(weight.value.grad().reshaped(
                                                    {1, 1, 1, weight.value.value().size()}))
                                   .x),
                  1e-5)
            << weight.name;
      }
    std::swap(batch.tokens[0], batch.tokens[2]);
    const Tensor after = model.forward(batch).value();
    double moved = 0;
    for (int64_t i = 0; i < 3; ++i)
      moved = std::max(moved, std::abs(number(after, i) - number(before.value(), i)));
    if (positions == Positions::none)
      EXPECT_LE(moved, 300 * static_cast<double>(kEpsilon));
    else
      EXPECT_GT(moved, 1e-4);
  }
}

}  // namespace
}  // namespace attn::distance_bias_test
