// Widths that make layers equal: what they promise is counted in layers that are really built.

#include "harness/measure/equal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "harness/measure/workload.h"
#include "harness/model/layer.h"
#include "variants/catalog.h"

namespace attn::equal_test {
namespace {

LayersSpec layers(const std::string& variant, int64_t width, int64_t heads, int64_t count = 1) {
  LayerConfig layer;
  layer.variant = &find_variant(variant);
  layer.width = width;
  layer.heads = heads;
  layer.feed_forward = 2 * width;
  layer.max_len = 64;
  layer.causal = layer.variant->traits.causal;
  return {.layer = layer, .layers = count};
}

double learned(const LayersSpec& spec) {
  double count = 0;
  for (int64_t i = 0; i < spec.layers; ++i) {
    const Layer layer(layer_config_at(spec.layer, i));
    for (const Weight& weight : layer.weights())
      if (weight.learned) count += static_cast<double>(weight.value.value().size());
  }
  return count;
}

TEST(Equal, CountsParametersOfLayersThatAreBuilt) {
  for (const char* variant :
       {"full", "linear", "mamba2[block=paper]", "gla", "full+mamba2[block=paper]",
        "rwkv6[block=paper]", "rwkv7[block=paper]", "gau[block=paper]", "full+gau[block=paper]",
        "full+rwkv7[block=paper]", "luna[block=paper]"}) {
    const LayersSpec spec = layers(variant, 48, 2, 4);
    EXPECT_EQ(static_cast<double>(sizes_of(spec).parameters), learned(spec)) << variant;
  }
}

TEST(Equal, LayersHaveAsManyParametersAsExactAttention) {
  const double target = learned(layers("full", 64, 2));
  for (const char* variant :
       {"linear", "gla", "mamba2[block=paper]", "gated_deltanet[block=paper]", "mamba[block=paper]",
        "rwkv6[block=paper]", "rwkv7[block=paper]", "hyena[block=paper]"}) {
    LayersSpec spec = layers(variant, 64, 2);
    spec.layer = equalised(spec, Equal::parameters, exact_reference());
    EXPECT_EQ(spec.layer.width % spec.layer.heads, 0) << variant;
    EXPECT_LE(std::fabs(learned(spec) / target - 1), 0.02) << variant << " " << spec.layer.width;
  }
}

// What a workload counts of a pass, also where work is done once for all sequences (hyena) and
// where the given width would be far too dear (gated_deltanet).
TEST(Equal, LayersTakeAsManyFlopsAsExactAttention) {
  for (const int64_t batch : {1, 16}) {
    const auto flops = [&](const std::string& variant, Equal equal) {
      LayersSpec spec = layers(variant, 64, 2);
      spec.batch = batch;
      spec.layer = equalised(spec, equal, exact_reference());
      WorkloadSpec workload;
      workload.variant = spec.layer.variant;
      workload.length = spec.layer.max_len;
      workload.batch = batch;
      workload.heads = spec.layer.heads;
      workload.head_dim = spec.layer.width / spec.layer.heads;
      workload.feed_forward = spec.layer.feed_forward;
      workload.scope = ScopeKind::layer;
      workload.causal = true;
      const double counted = Workload(workload).flops();
      EXPECT_LE(std::fabs(sizes_of(spec).flops / counted - 1), 1e-3) << variant;
      return counted;
    };
    const double target = flops("full", Equal::width);
    EXPECT_EQ(flops("full", Equal::flops), target);
    EXPECT_GT(flops("gated_deltanet[block=paper]", Equal::width) / target, 1.1);
    for (const char* variant :
         {"linear", "gla", "hyena", "mamba2[block=paper]", "gated_deltanet[block=paper]",
          "rwkv6[block=paper]", "rwkv7[block=paper]"})
      EXPECT_LE(std::fabs(flops(variant, Equal::flops) / target - 1), 0.02) << variant;
  }
}

// Where layers hand something on, later ones have products of their own.
TEST(Equal, CountsTheFlopsOfLaterLayers) {
  for (const auto& [variant, has_more] : std::map<std::string, bool>{
           {"rwkv7[block=paper]", true}, {"luna[block=paper]", false}}) {  // a norm alone
    const auto counted = [&, name = variant](int64_t count) {
      const LayersSpec spec = layers(name, 64, 2, count);
      WorkloadSpec workload;
      workload.variant = spec.layer.variant;
      workload.length = spec.layer.max_len;
      workload.heads = 2;
      workload.head_dim = 32;
      workload.feed_forward = spec.layer.feed_forward;
      workload.scope = ScopeKind::model;
      workload.layers = count;
      workload.causal = spec.layer.causal;
      return std::pair(Workload(workload).flops(), sizes_of(spec).flops);
    };
    const auto [first, first_layers] = counted(1);
    const auto [three, three_layers] = counted(3);
    EXPECT_LE(std::fabs((three_layers - first_layers) / (three - first) - 1), 1e-3) << variant;
    EXPECT_EQ(three_layers > 3 * first_layers, has_more) << variant;
  }
}

// Without a feed-forward the width alone can make up.
TEST(Equal, ALayerWithoutAFeedForwardIsWider) {
  const LayersSpec given = layers("gau[block=paper]", 256, 4);
  const LayerConfig found = equalised(given, Equal::parameters, exact_reference());
  EXPECT_GT(found.width, 256);
  EXPECT_EQ(found.feed_forward, given.layer.feed_forward);
  const double target = learned(layers("full", 256, 4));
  EXPECT_LE(std::fabs(learned({.layer = found, .layers = 1}) / target - 1), 0.02);
}

TEST(Equal, KeepsTheWidthWhereTheFeedForwardCanMakeUp) {
  const LayerConfig given = layers("full", 64, 2).layer;
  for (const Equal equal : {Equal::width, Equal::parameters, Equal::flops}) {
    const LayerConfig same = equalised(layers("full", 64, 2), equal, exact_reference());
    EXPECT_EQ(same.width, given.width);
    EXPECT_EQ(same.feed_forward, given.feed_forward);
  }
  const LayerConfig gla = equalised(layers("gla", 64, 2), Equal::parameters, exact_reference());
  EXPECT_EQ(gla.width, 64);
  EXPECT_LT(gla.feed_forward, 128);
  const LayerConfig wide =
      equalised(layers("gated_deltanet[block=paper]", 64, 2), Equal::parameters, exact_reference());
  EXPECT_LT(wide.width, 64);
  EXPECT_EQ(wide.width / wide.heads % 8, 0);
}

// Head widths that eight does not divide into have smaller steps; a feed-forward stays in
// proportion.
TEST(Equal, FeedForwardsStayInProportion) {
  for (const char* variant : {"mega", "hyena", "gated_deltanet[block=paper]", "long_conv"})
    for (const int64_t width : {32, 64, 96})
      for (const Equal equal : {Equal::parameters, Equal::flops}) {
        const LayersSpec given = layers(variant, width, 4);
        LayerConfig found;
        try {
          found = equalised(given, equal, exact_reference());
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("no width gives layers of"), std::string::npos);
          continue;
        }
        const double share =
            static_cast<double>(found.feed_forward) / static_cast<double>(2 * found.width);
        EXPECT_GE(share, 0.49) << variant << " " << width;
        EXPECT_LE(share, 2.01) << variant << " " << width;
      }
}

}  // namespace
}  // namespace attn::equal_test
