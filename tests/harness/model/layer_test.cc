// The multi-head layer around a variant, and around a mixer.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "harness/measure/fidelity.h"
#include "harness/measure/peak_memory.h"
#include "harness/model/layer.h"
#include "harness/model/layer_stack.h"
#include "tests/harness/model/written_out.h"
#include "tests/harness/train/toy.h"
#include "variants/api/mixer.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::layer_test {
namespace {

// A layer against the same layer written out in double loops, pre-norm and post-norm, with and
// without padding.

using namespace written_out;

constexpr int64_t kWidth = 6, kHeads = 3, kHidden = 5;

Rows layer(const Rows& x, const Named& w, Norm norm, size_t visible) {
  const auto attend = [&](const Rows& y) {
    return attended(y, y, w, "", kHeads, [&](size_t, size_t key) { return key < visible; });
  };
  const auto feed = [&](const Rows& y) { return fed_forward(y, w, ""); };
  if (norm == Norm::pre) {
    const Rows middle = plus(x, attend(normed(x, w, "attention_norm")));
    return plus(middle, feed(normed(middle, w, "feed_forward_norm")));
  }
  const Rows middle = normed(plus(x, attend(x)), w, "attention_norm");
  return normed(plus(middle, feed(middle)), w, "feed_forward_norm");
}

LayerConfig config_of(const VariantInfo& variant, Norm norm, double dropout = 0) {
  return {.variant = &variant,
          .width = kWidth,
          .heads = kHeads,
          .feed_forward = kHidden,
          .max_len = 4,
          .norm = norm,
          .dropout = dropout,
          .seed = 5};
}

TEST(Layer, EqualsTheLayerWrittenOut) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  for (const Norm norm : {Norm::pre, Norm::post})
    for (const bool padded : {false, true}) {
      const Layer made(config_of(plain, norm));
      Named weights;
      for (const Weight& weight : made.weights()) {
        // Gains of one and biases of zero would hide a missing one.
        if (weight.value.shape().rank() == 1)
          weight.value.set_value(Tensor::normal(weight.value.shape(), rng(1, weight.name)));
        weights[weight.name] = weight.value.value();
      }
      EXPECT_EQ(weights.size(), 12u);
      const std::vector<int64_t> lengths =
          padded ? std::vector<int64_t>{2, 4} : std::vector<int64_t>{};
      const Tensor x = Tensor::normal({2, 4, kWidth}, rng(2, "x"));
      const Tensor y = made.forward(Var(x), lengths).value();
      for (int64_t b = 0; b < 2; ++b) {
        Rows rows(4, std::vector<double>(kWidth));
        for (size_t at = 0; at < 4 * kWidth; ++at)
          rows[at / kWidth][at % kWidth] =
              static_cast<double>(x[b * 4 * kWidth + static_cast<int64_t>(at)]);
        const Rows expected = layer(rows, weights, norm, padded && b == 0 ? 2 : 4);
        // Five sums of at most six products of numbers of size 10: a hundred roundings.
        for (size_t at = 0; at < 4 * kWidth; ++at)
          EXPECT_NEAR(static_cast<double>(y[b * 4 * kWidth + static_cast<int64_t>(at)]),
                      expected[at / kWidth][at % kWidth], 100 * 10 * static_cast<double>(kEpsilon));
      }
    }
}

TEST(Layer, OfAModelTellsItsAttentionWhichLayerItIs) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  const LayerStack stack(config_of(plain, Norm::pre), 3, 1);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(stack.layers()[i]->attention().config().layer, static_cast<int64_t>(i));
}

TEST(Layer, DropsOnlyWhenGivenAStream) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  const Layer kept(config_of(plain, Norm::pre)), dropping(config_of(plain, Norm::pre, 0.5));
  const Var x(Tensor::normal({2, 4, kWidth}, rng(2, "x")));
  Rng stream = rng(3, "dropout"), again = rng(3, "dropout");
  const Tensor evaluated = dropping.forward(x, {}).value(),
               trained = dropping.forward(x, {}, &stream).value();
  const Tensor repeated = dropping.forward(x, {}, &again).value(),
               expected = kept.forward(x, {}).value();
  int64_t changed = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(evaluated[i], expected[i]);
    EXPECT_EQ(trained[i], repeated[i]);
    changed += trained[i] != expected[i];
  }
  EXPECT_GT(changed, expected.size() / 2);
}

TEST(Layer, RefusesWhatDoesNotFit) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  LayerConfig config = config_of(plain, Norm::pre);
  config.heads = 4;
  EXPECT_THROW(Layer{config}, Error);
  EXPECT_THROW(
      Layer(config_of(plain, Norm::pre)).forward(Var(Tensor::zeros({2, 4, kWidth + 1})), {}),
      Error);
}

// A mixer in the place of attention: the layer written out without projections, its weights, and
// what is measured of it.

constexpr int64_t kLen = 4;

LayerConfig config_of(const char* mixer, Norm norm) {
  return {.variant = &find_variant(mixer),
          .width = kWidth,
          .heads = 3,
          .feed_forward = 5,
          .max_len = kLen,
          .norm = norm,
          .seed = 5};
}

Rows rows_of(const Tensor& t) {
  Rows rows(kLen, std::vector<double>(kWidth));
  for (size_t i = 0; i < kLen * kWidth; ++i) rows[i / kWidth][i % kWidth] = at(t, i);
  return rows;
}

TEST(MixerLayer, GivesTheMixerItsInputAndAddsItsOutput) {
  for (const char* mixer : {"conv", "mean", "recurrent", "window_mlp"})
    for (const Norm norm : {Norm::pre, Norm::post}) {
      const Layer layer(config_of(mixer, norm));
      Named w;
      for (const Weight& weight : layer.weights()) {
        weight.value.set_value(Tensor::normal(weight.value.shape(), rng(1, weight.name)));
        w[weight.name] = weight.value.value();
      }
      const Mixer& own = *as_mixer(layer.attention());
      const auto mix = [&](const Rows& x) {
        const Tensor t({1, kLen, kWidth});
        for (int64_t i = 0; i < t.size(); ++i)
          t[i] = static_cast<real>(
              x[static_cast<size_t>(i / kWidth)][static_cast<size_t>(i % kWidth)]);
        return rows_of(own.mix(Var(t), {.kv_lengths = {3}}).value());
      };
      const Tensor x = Tensor::normal({1, kLen, kWidth}, rng(2, "x"));
      const bool pre = norm == Norm::pre;
      const Rows mixed = around(rows_of(x), w, "attention_norm", pre, mix),
                 want = around(mixed, w, "feed_forward_norm", pre,
                               [&](const Rows&y) { return fed_forward(y, w, ""); }),
                 got = rows_of(layer.forward(Var(x), {3}).value());
      for (size_t i = 0; i < kLen * kWidth; ++i)  // a thousand roundings of numbers of size 10
        EXPECT_NEAR(got[i / kWidth][i % kWidth], want[i / kWidth][i % kWidth], 1e-3) << mixer;
    }
}

// No projection is there to be paid for or trained.
TEST(MixerLayer, HasTheWeightsOfTheMixerInPlaceOfProjections) {
  for (const char* mixer : {"conv", "mean", "recurrent", "window_mlp"}) {
    const Layer layer(config_of(mixer, Norm::pre));
    size_t own = 0;
    for (const Weight& weight : layer.weights()) {
      EXPECT_FALSE(says(weight.name, "W_"));
      if (weight.name.starts_with("attention.")) ++own;
    }
    EXPECT_EQ(own, layer.attention().weights().size()) << mixer;
    EXPECT_EQ(layer.weights().size(), own + 8) << mixer;  // two norms and a feed-forward
  }
}

TEST(MixerLayer, ItsFlopsLeaveProjectionsOut) {
  for (const char* mixer : {"conv", "mean", "recurrent", "window_mlp"})
    for (const ScopeKind scope : {ScopeKind::layer, ScopeKind::model}) {
      Workload workload({.variant = &find_variant(mixer), .length = 128, .scope = scope});
      workload.run();
      const double before = counters().flops;
      workload.run();
      EXPECT_NEAR((counters().flops - before) / workload.flops(), 1, 0.02) << mixer;
    }
}

TEST(MixerLayer, HasNoDistanceFromAttention) {
  for (const VariantInfo& info : all_variants()) {
    const WorkloadSpec spec{.variant = &info, .length = 16};
    const VariantInfo::Reads read = info.read_by(Params(info.name, info.params));
    EXPECT_EQ(why_no_fidelity(spec).has_value(), !read.queries || !read.keys) << info.name;
    if (info.traits.mixer) {
      EXPECT_THROW(measure_fidelity(spec, InputKind::random, 1), Error) << info.name;
    }
  }
}

// The memory of scope attention is that of mix(): nothing is split into heads.
TEST(MixerLayer, IsMeasuredOnTheRowsOfTheLayer) {
  Workload workload({.variant = &find_variant("mean"), .length = 512, .batch = 2});
  const MemoryFigures found = measure_memory(workload);
  EXPECT_NEAR(
      static_cast<double>(found.extra_bytes) / static_cast<double>(*found.declared_extra_bytes), 1,
      0.01);
}

// The trait and the class say the same, and what is split into heads is what is side by side.
TEST(MixerLayer, AnswersValuesInHeadsAsTheRowsOfTheLayer) {
  for (const VariantInfo& info : all_variants()) {
    const auto made =
        info.build({.heads = 2, .head_dim = 3, .max_len = 8, .seed = 1, .params = {}}, {});
    EXPECT_EQ(as_mixer(*made) != nullptr, info.traits.mixer) << info.name;
    if (!info.traits.mixer) continue;
    const Var v(Tensor::normal({2, 2, 8, 3}, rng(1, "v"))), other(Tensor::zeros({2, 2, 8, 3}));
    const Tensor rows = as_mixer(*made)->mix(merge_heads(v), {.kv_lengths = {8, 5}}).value(),
                 heads =
                     merge_heads(made->forward(other, other, v, {.kv_lengths = {8, 5}})).value();
    for (int64_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], heads[i]) << info.name;
  }
}

TEST(MixerLayer, RefusesRowsOfAnotherWidth) {
  const auto mean = find_variant("mean").build({.heads = 2, .head_dim = 3, .params = {}}, {});
  EXPECT_THROW(as_mixer(*mean)->mix(Var(Tensor::zeros({1, 4, 5}))), Error);
  EXPECT_THROW(as_mixer(*mean)->mix(Var(Tensor::zeros({1, 4, 6})), {.causal = true}), Error);
  EXPECT_THROW(as_mixer(*mean)->mix(Var(Tensor::zeros({1, 4, 6})), {.kv_lengths = {5}}), Error);
}

}  // namespace
}  // namespace attn::layer_test
