// Gates: what a projection costs, how random ones are drawn, what build() and a decoder refuse, and
// that query heads that share keys keep gates of their own.
#include "variants/api/gates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/gated_attention.h"
#include "variants/catalog.h"

namespace attn::gates_test {
namespace {

TEST(Gates, AProjectionCostsItsMatrices) {
  EXPECT_EQ(projection_weights({.name = "a", .width = 8}, 64, 4), 64 * 32);
  EXPECT_EQ(projection_weights({.name = "a", .width = 8, .rank = 3}, 64, 4), 64 * 3 + 3 * 32);
  EXPECT_EQ(total_width({{.name = "a", .width = 8}, {.name = "b"}}), 9);
}

// Of head h and channel c: N(bias, scale²), of an own stream for each name, seed and part.
TEST(Gates, RandomOnesLieAroundTheStartOfTheBias) {
  const std::vector<GateInput> gates = {{.name = "a", .width = 2, .bias = {10, 20, 30, 40}},
                                        {.name = "b"}};
  const std::vector<Tensor> x = random_gates(gates, 3, 2, 200, 1, 0.5);
  ASSERT_EQ(x.size(), 2u);
  EXPECT_EQ(x[0].shape(), (Shape{3, 2, 200, 2}));
  EXPECT_EQ(x[1].shape(), (Shape{3, 2, 200, 1}));
  double sums[4] = {};
  for (int64_t i = 0; i < x[0].size(); ++i) sums[i / 400 % 2 * 2 + i % 2] += x[0][i] / 600.0;
  for (int j = 0; j < 4; ++j) EXPECT_NEAR(sums[j], 10 * (j + 1), 5 * 0.5 / std::sqrt(600.0));
  const auto first = [&](uint64_t seed, uint64_t index) {
    return random_gates(gates, 1, 2, 1, seed, 1, index)[1][0];
  };
  EXPECT_EQ(first(1, 0), first(1, 0));
  EXPECT_NE(first(1, 0), first(2, 0));
  EXPECT_NE(first(1, 0), first(1, 1));
}

class Own final : public GatedAttention {
 public:
  explicit Own(const AttentionConfig& config) : GatedAttention(config) {}

 private:
  Var do_gated_forward(const Var&, const Var&, const Var& v, std::span<const Var>,
                       const Mask&) const override {
    return v;
  }
};

TEST(Gates, TheTraitAndTheDeclarationSayTheSame) {
  const AttentionConfig config{1, 2, 8, false, 1, {}};
  VariantInfo info;
  info.name = "own";
  info.make = make_as<Own>;
  info.gates = [](const AttentionConfig&) { return std::vector<GateInput>{{.name = "a"}}; };
  EXPECT_THROW(info.build(config, {}), Error);
  info.traits.gated = true;
  EXPECT_EQ(info.build(config, {})->gates().size(), 1u);
  info.traits.cross = true;
  EXPECT_THROW(info.build(config, {}), Error);
  info.traits.cross = false;
  info.gates = [](const AttentionConfig&) {
    return std::vector<GateInput>(5, GateInput{.name = "a"});
  };
  EXPECT_THROW(info.build(config, {}), Error);
  info.gates = nullptr;
  EXPECT_THROW(info.build(config, {}), Error);
}

Tensor positions(const Tensor& x, int64_t begin, int64_t end) {
  const NoGrad no_grad;
  return slice(Var(x), 2, begin, end).value().clone();
}

TEST(Gates, OfADecoderMustFit) {
  const auto gla = find_variant("gla").build({2, 4, 8, true, 1, {}}, {});
  const auto decoder = gla->decoder(1, 8);
  const Tensor x = bridge::normal({1, 2, 3, 4}, "x"), row = positions(x, 0, 1), out(row.shape());
  const std::vector<Tensor> three = {x}, one = {row};
  EXPECT_THROW(decoder->extend(x, x), Error);
  EXPECT_THROW(decoder->extend(x, x, {}, one), Error);
  EXPECT_THROW(decoder->step(row, row, row, out), Error);
  EXPECT_THROW(decoder->step(row, row, row, out, three), Error);
  EXPECT_EQ(decoder->length(), 0);
  EXPECT_NO_THROW(decoder->extend(x, x, {}, three));
  EXPECT_NO_THROW(decoder->step(row, row, row, out, one));
  const auto full = find_variant("full").build({2, 4, 8, true, 1, {}}, {});
  EXPECT_THROW(full->decoder(1, 8)->extend(x, x, {}, three), Error);
}

// A state for each query head, and the answers of keys that the caller repeats.
TEST(Gates, StayWithTheirQueryHeadWhereKeysAreShared) {
  for (const char* name : {"gla", "mamba2"}) {
    const auto attention = find_variant(name).build({4, 3, 9, true, 1, {}}, {});
    const Tensor q = bridge::normal({2, 4, 9, 3}, "q"), k = bridge::normal({2, 2, 9, 3}, "k"),
                 v = bridge::normal({2, 2, 9, 3}, "v");
    const NoGrad no_grad;
    const auto repeated = [](const Tensor& x) { return repeat_heads(Var(x), 2).value(); };
    const std::vector<Tensor> gates = random_gates(attention->gates(), 2, 4, 9, 5);
    const Tensor want =
        attention->forward(Var(q), Var(repeated(k)), Var(repeated(v)), {true, {}}, leaves_of(gates))
            .value();
    const auto decoder = attention->decoder(2, 9, 2);
    EXPECT_EQ(decoder->state_bytes(), attention->decoder(2, 9)->state_bytes());
    decoder->extend(positions(k, 0, 4), positions(v, 0, 4), {},
                    std::vector<Tensor>{positions(gates[0], 0, 4)});
    for (int64_t t = 4; t < 9; ++t) {
      const Tensor out({2, 4, 1, 3});
      decoder->step(positions(q, t, t + 1), positions(k, t, t + 1), positions(v, t, t + 1), out,
                    std::vector<Tensor>{positions(gates[0], t, t + 1)});
      EXPECT_LE(bridge::relative_error(out, bridge::array_of(positions(want, t, t + 1)).x), 1e-5)
          << name << " " << t;
    }
  }
}

}  // namespace
}  // namespace attn::gates_test
