// Layers that hand something on: what a later layer computes of what it received, written out in
// double; the gradient into what was received; and what is refused.
#include "variants/api/carrying.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "tests/said.h"
#include "tests/variants/block/written_block.h"

namespace attn::carrying_test {
namespace {

using namespace written_block;

CarryingMixer::Passed passed(const Built& b, const Tensor& received = {}) {
  return as_carrying(*b.attention)
      ->pass(Var(b.rows), received.defined() ? Var(received) : Var(),
             {.causal = b.attention->config().causal});
}
Tensor received_of(const Built& b) {
  return Tensor::normal(as_carrying(*b.attention)->handed_shape(1, kLength), rng(9, "received"));
}

// Peng et al. 2025, section 4: values of a later layer are mixed with those of the first.
TEST(Carrying, Rwkv7MixesTheValuesOfTheFirstLayer) {
  const Built first("rwkv7"), later("rwkv7", {}, true);
  const WrittenRwkv7 of_first{first}, of_later{later};
  Rows values;
  for (int64_t t = 0; t < kLength; ++t) values.push_back(of_first.values(t));
  const CarryingMixer::Passed handed = passed(first);
  expect_rows(handed.handed.value(), values);
  expect_rows(handed.out.value(), of_first.answer({}));
  const CarryingMixer::Passed mixed = passed(later, handed.handed.value());
  expect_rows(mixed.out.value(), of_later.answer(values));
  expect_rows(mixed.handed.value(), values);  // those of the first layer, not its own
}

TEST(Carrying, Rwkv7StartsAsTheCodeDoes) {
  const auto build = [](int64_t heads, bool receives) {
    return find_variant("rwkv7[block=paper]")
        .build({.heads = heads, .head_dim = 64, .params = {}, .receives = receives}, {});
  };
  const auto first = build(2, false), later = build(2, true), wide = build(16, true);
  const auto find = [](const Attention& of, const std::string& name) {
    for (const Weight& weight : of.weights())
      if (weight.name == name) return weight.value.value();
    return Tensor();
  };
  EXPECT_EQ(first->weights().size() + 3, later->weights().size());
  EXPECT_FALSE(find(*first, "first.bias").defined());
  // 0.73 - 0.4·(c/(width - 1) - 0.5)
  const Tensor bias = find(*later, "first.bias");
  ASSERT_EQ(bias.shape(), (Shape{128}));
  EXPECT_NEAR(static_cast<double>(bias[0]), 0.93, 1e-6);
  EXPECT_NEAR(static_cast<double>(bias[127]), 0.53, 1e-6);
  EXPECT_NEAR(static_cast<double>(bias[64]), 0.73 - 0.4 * (64.0 / 127 - 0.5), 1e-6);
  // max(32, 1.7·√width), in steps of 32.
  EXPECT_EQ(find(*later, "first.down").shape(), (Shape{128, 32}));
  EXPECT_EQ(find(*later, "first.up").shape(), (Shape{32, 128}));
  EXPECT_EQ(find(*wide, "first.down").shape(), (Shape{1024, 64}));
}

// Rows times a matrix, plus a bias.
Rows affine(const Built& b, const Rows& rows, const std::string& name) {
  Rows all;
  for (const Row& row : rows) {
    all.push_back(b.times(row, name));
    for (size_t c = 0; c < all.back().size(); ++c)
      all.back()[c] += b.at(name + ".bias", static_cast<int64_t>(c));
  }
  return all;
}

// softmax(q·kᵀ/√d)·k of each head.
Rows attended(const Rows& q, const Rows& k) {
  Rows all;
  for (const Row& query : q) {
    Row y(kWidth, 0);
    for (size_t first = 0; first < kWidth; first += kDim) {
      double total = 0;
      for (const Row& key : k) {
        double logit = 0;
        for (size_t c = first; c < first + kDim; ++c) logit += query[c] * key[c];
        const double weight = std::exp(logit / std::sqrt(static_cast<double>(kDim)));
        total += weight;
        for (size_t c = first; c < first + kDim; ++c) y[c] += weight * key[c];
      }
      for (size_t c = first; c < first + kDim; ++c) y[c] /= total;
    }
    all.push_back(y);
  }
  return all;
}

// Ma et al. 2021, section 3: Y_P = Attention(P, X), Y_X = Attention(X, Y_P), P' = LayerNorm(Y_P +
// P), where the norm is of the layer that reads it.
void expect_luna(const Built& b, const CarryingMixer::Passed& found, const Rows& p) {
  const Rows packed = attended(affine(b, p, "W_pack.query"), affine(b, b.x, "W_pack.keys"));
  const Rows read = affine(b, packed, "W_keys");
  expect_rows(found.out.value(), affine(b, attended(affine(b, b.x, "W_query"), read), "W_output"));
  Rows handed = p;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t c = 0; c < kWidth; ++c) handed[i][c] += packed[i][c];
  expect_rows(found.handed.value(), handed);
}

TEST(Carrying, LunaPacksWithWhatTheLayerBeforePacked) {
  constexpr int64_t latents = 3;
  const Built first("luna", {{"latents", latents}}), later("luna", {{"latents", latents}}, true);
  Rows p;
  for (int64_t i = 0; i < latents; ++i) {
    p.emplace_back();
    for (int64_t c = 0; c < kWidth; ++c) p.back().push_back(first.at("latents", i * kWidth + c));
  }
  const CarryingMixer::Passed of_first = passed(first);
  expect_luna(first, of_first, p);
  EXPECT_FALSE(later.weights.contains("latents"));
  Rows normed = rows_in_double(of_first.handed.value());
  for (Row& row : normed) {
    double mean = 0, spread = 0;
    for (const double x : row) mean += x / kWidth;
    for (const double x : row) spread += (x - mean) * (x - mean) / kWidth;
    for (size_t c = 0; c < kWidth; ++c)
      row[c] = (row[c] - mean) / std::sqrt(spread + 1e-5) *
                   later.at("packed_norm.gain", static_cast<int64_t>(c)) +
               later.at("packed_norm.shift", static_cast<int64_t>(c));
  }
  expect_luna(later, passed(later, of_first.handed.value()), normed);
}

// Differences of the outputs and of what is handed on, along one direction.
TEST(Carrying, GradientsReachWhatWasReceived) {
  for (const std::string variant : {"rwkv7", "luna"}) {
    const Built b(variant, {}, true);
    const Tensor received = received_of(b);
    const Tensor of_out = Tensor::normal(b.rows.shape(), rng(1, "out")),
                 of_handed = Tensor::normal(received.shape(), rng(2, "handed"));
    const auto answer = [&](const Var& given) {
      const CarryingMixer::Passed found =
          as_carrying(*b.attention)
              ->pass(Var(b.rows), given, {.causal = b.attention->config().causal});
      return add(sum(multiply(found.out, Var(of_out))),
                 sum(multiply(found.handed, Var(of_handed))));
    };
    const Var leaf(received, true);
    answer(leaf).backward();
    const Tensor direction = Tensor::normal(received.shape(), rng(3, "direction"));
    const double step = kIsDouble ? 1e-6 : 1e-3;
    double claimed = 0, found = 0, length = 0;
    for (int64_t i = 0; i < received.size(); ++i) {
      claimed += static_cast<double>(leaf.grad()[i]) * static_cast<double>(direction[i]);
      length += std::pow(static_cast<double>(leaf.grad()[i]), 2);
    }
    for (const double sign : {1.0, -1.0}) {
      const Tensor moved = received.clone();
      for (int64_t i = 0; i < moved.size(); ++i)
        moved[i] += static_cast<real>(sign * step * static_cast<double>(direction[i]));
      const NoGrad no_grad;
      found += sign * static_cast<double>(answer(Var(moved)).value()[0]) / (2 * step);
    }
    EXPECT_GT(length, 1) << variant;
    EXPECT_NEAR(claimed / std::sqrt(length), found / std::sqrt(length), kIsDouble ? 1e-7 : 2e-2)
        << variant;
  }
}

TEST(Carrying, RefusesWhatIsMissingOrTooMuch) {
  for (const std::string variant : {"rwkv7", "luna"}) {
    const Built first(variant), later(variant, {}, true);
    const Tensor received = received_of(later);
    const Mixer& alone = *as_mixer(*later.attention);
    const Mask mask{.causal = later.attention->config().causal};
    EXPECT_TRUE(says(fault_of([&] { alone.mix(Var(later.rows), mask); }),
                     "receives what the layer before hands on"));
    EXPECT_THROW(passed(later), Error) << variant;
    EXPECT_THROW(passed(first, received), Error) << variant;
    EXPECT_THROW(passed(later, Tensor::zeros(received.shape().with(2, kWidth + 1))), Error);
  }
  const AttentionConfig receiving{.heads = 2, .head_dim = 4, .params = {}, .receives = true};
  EXPECT_THROW(find_variant("full").build(receiving, {}), Error);
  EXPECT_THROW(find_variant("mamba2[block=paper]").build(receiving, {}), Error);
  EXPECT_EQ(as_carrying(*find_variant("mamba2[block=paper]").build({.params = {}}, {})), nullptr);
  // A step uses up what it received.
  const Built later("rwkv7", {}, true);
  const auto made = later.attention->decoder(1, kLength);
  auto& decoder = dynamic_cast<CarryingDecoder&>(*made);
  const Tensor row = Tensor::zeros({1, kHeads, 1, kDim}), out(row.shape());
  EXPECT_THROW(decoder.step(row, row, row, out), Error);
  decoder.receive(Tensor::zeros({1, 1, kWidth}));
  decoder.step(row, row, row, out);
  EXPECT_THROW(decoder.step(row, row, row, out), Error);
  // Rows that have read the whole sequence hold the future.
  EXPECT_THROW(find_variant("luna[block=paper]").build({.causal = true, .params = {}}, {}), Error);
}

}  // namespace
}  // namespace attn::carrying_test
