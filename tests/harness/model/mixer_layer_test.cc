// A mixer in the place of attention: the layer written out without projections, its weights, and
// what is measured of it.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "harness/measure/fidelity.h"
#include "harness/measure/peak_memory.h"
#include "harness/model/layer.h"
#include "tests/harness/model/written_out.h"
#include "variants/api/mixer.h"
#include "variants/catalog.h"

namespace attn::mixer_layer_test {
namespace {

using namespace written_out;

constexpr int64_t kLen = 4, kWidth = 6;

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
      EXPECT_EQ(weight.name.find("W_"), std::string::npos) << weight.name;
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
}  // namespace attn::mixer_layer_test
