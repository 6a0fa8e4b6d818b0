// Feed-forwards of designs of their own: channel mixing of RWKV-6 and RWKV-7 written out, pass and
// steps, and a layer that has none.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/ops.h"
#include "harness/measure/dense_flops.h"
#include "harness/model/encoder.h"
#include "harness/model/layer.h"
#include "tests/harness/model/written_out.h"
#include "variants/catalog.h"

namespace attn::feed_forward_test {
namespace {

using namespace written_out;

constexpr int64_t kWidth = 6, kHidden = 10, kBatch = 2, kLength = 7;

// Squares of sums: a hundred roundings of the number and of its parts.
void expect_near(double found, double wanted) {
  EXPECT_NEAR(found, wanted, 1e-5 * (1 + std::fabs(wanted)));
}

LayerConfig config_of(const std::string& variant, Norm norm) {
  return {.variant = &find_variant(variant),
          .width = kWidth,
          .heads = 2,
          .feed_forward = kHidden,
          .max_len = kLength,
          .causal = true,
          .norm = norm,
          .seed = 5};
}

// Away from ones and zeros, which would hide that they are not read.
Named drawn(const FeedForwardBlock& block) {
  Named weights;
  for (const Weight& weight : block.weights()) {
    weight.value.set_value(Tensor::normal(weight.value.shape(), rng(3, weight.name), 0.6));
    weights[weight.name] = weight.value.value();
  }
  return weights;
}

Rows shifted(const Rows& x, const Tensor& share) {
  Rows y = x;
  for (size_t t = 0; t < x.size(); ++t)
    for (size_t c = 0; c < x[t].size(); ++c)
      y[t][c] += at(share, c) * ((t > 0 ? x[t - 1][c] : 0) - x[t][c]);
  return y;
}

// relu(x'·W_k)²·W_v, of RWKV-6 times σ(x''·W_r).
Rows channel_mixing(const Rows& x, const Named& w, bool gated) {
  Rows hidden = times(shifted(x, w.at("feed_forward.mix")), w.at("feed_forward.hidden"));
  for (auto& row : hidden)
    for (double& value : row) value = value > 0 ? value * value : 0;
  Rows y = times(hidden, w.at("feed_forward.output"));
  if (!gated) return y;
  const Rows gate = times(shifted(x, w.at("feed_forward.gate_mix")), w.at("feed_forward.gate"));
  for (size_t t = 0; t < y.size(); ++t)
    for (size_t c = 0; c < y[t].size(); ++c) y[t][c] /= 1 + std::exp(-gate[t][c]);
  return y;
}

Rows rows_of(const Tensor& x, int64_t b) {
  Rows rows(kLength, std::vector<double>(kWidth));
  for (size_t i = 0; i < kLength * kWidth; ++i)
    rows[i / kWidth][i % kWidth] = at(x, static_cast<size_t>(b) * kLength * kWidth + i);
  return rows;
}

TEST(FeedForward, ChannelMixingIsWhatThePapersWrite) {
  for (const bool gated : {false, true})
    for (const Norm norm : {Norm::pre, Norm::post}) {
      const FeedForwardBlock block(
          config_of(gated ? "rwkv6[block=paper]" : "rwkv7[block=paper]", norm));
      const Named w = drawn(block);
      EXPECT_EQ(w.size(), gated ? 7u : 5u);
      const Tensor x = Tensor::normal({kBatch, kLength, kWidth}, rng(2, "x"));
      const Tensor y = block.forward(Var(x), nullptr).value();
      Tensor before;  // of steps
      for (int64_t t = 0; t < kLength; ++t) {
        const Tensor row({kBatch, 1, kWidth});
        for (int64_t b = 0; b < kBatch; ++b)
          std::copy_n(x.data() + (b * kLength + t) * kWidth, kWidth, row.data() + b * kWidth);
        const Tensor next = block.step(Var(row), before).value();
        for (int64_t i = 0; i < next.size(); ++i)
          expect_near(next[i], y[(i / kWidth * kLength + t) * kWidth + i % kWidth]);
      }
      EXPECT_EQ(block.state_bytes(kBatch), before.size() * static_cast<int64_t>(sizeof(real)));
      for (int64_t b = 0; b < kBatch; ++b) {
        const Rows wanted = around(rows_of(x, b), w, "feed_forward_norm", norm == Norm::pre,
                                   [&](const Rows& in) { return channel_mixing(in, w, gated); });
        for (size_t i = 0; i < kLength * kWidth; ++i)
          expect_near(at(y, static_cast<size_t>(b) * kLength * kWidth + i),
                      wanted[i / kWidth][i % kWidth]);
      }
    }
}

// The mixer alone, and every other block, keep the feed-forward of before.
TEST(FeedForward, IsPlainButWhereTheBlockSaysSo) {
  for (const char* variant : {"rwkv6", "rwkv7", "gau", "full", "mamba2[block=paper]"}) {
    EXPECT_EQ(find_variant(variant).feed_forward, FeedForward::plain) << variant;
    EXPECT_EQ(FeedForwardBlock(config_of(variant, Norm::pre)).weights().size(), 6u) << variant;
    EXPECT_EQ(FeedForwardBlock(config_of(variant, Norm::pre)).state_bytes(1), 0) << variant;
  }
}

TEST(FeedForward, AUnitThatStandsForBothHasNone) {
  const LayerConfig config = config_of("gau[block=paper]", Norm::pre);
  const FeedForwardBlock none(config);
  EXPECT_TRUE(none.weights().empty());
  const Var x(Tensor::normal({1, kLength, kWidth}, rng(2, "x")));
  EXPECT_EQ(none.forward(x, nullptr).value().data(), x.value().data());
  const Layer layer(config);
  for (const Weight& weight : layer.weights())
    EXPECT_EQ(weight.name.find("feed_forward"), std::string::npos) << weight.name;
  EXPECT_EQ(layer.forward(x, {}).shape(), x.shape());
}

TEST(FeedForward, IsCountedAsItIs) {
  const DenseLayer dense{.tokens = 1, .heads = 2, .width = kWidth, .feed_forward = kHidden};
  const auto flops = [&](const char* variant) {
    const VariantInfo& info = find_variant(variant);
    return dense_flops(info, Params(info.name, info.params), dense);
  };
  EXPECT_EQ(flops("gau[block=paper]"), 0);
  EXPECT_EQ(flops("rwkv7[block=paper]"), 4 * kWidth * kHidden);
  EXPECT_EQ(flops("rwkv6[block=paper]"), 4 * kWidth * kHidden + 2 * kWidth * kWidth);
}

TEST(FeedForward, TheRowBeforeIsOfTheState) {
  const auto bytes = [](const char* variant) {
    ModelConfig config{.layers = 2, .length = kLength, .classes = 3};
    config.layer = config_of(variant, Norm::pre);
    return Encoder(config).state_bytes(kLength).value();
  };
  const auto row = static_cast<int64_t>(kWidth * sizeof(real));
  const AttentionShape shape{1, 2, kLength, kLength, kWidth / 2, true};
  const auto mixer = find_variant("rwkv7[block=paper]")
                         .build({.heads = 2, .head_dim = kWidth / 2, .causal = true}, {});
  EXPECT_EQ(bytes("rwkv7[block=paper]"),
            2 * (static_cast<int64_t>(mixer->state_bytes(shape)) + row));
}

}  // namespace
}  // namespace attn::feed_forward_test
