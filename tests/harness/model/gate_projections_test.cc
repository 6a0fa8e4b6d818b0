// The projections of gates in a layer: their weights, the numbers that they give, what they cost at
// each scope, and that they are trained.
#include "harness/model/gate_projections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/ops/ops.h"
#include "harness/measure/peak_memory.h"
#include "harness/model/encoder.h"
#include "harness/train/optimizer.h"
#include "tests/harness/measure/workloads.h"
#include "variants/catalog.h"

namespace attn::gate_projections_test {
namespace {

constexpr int64_t kHeads = 3, kHeadDim = 4, kWidth = kHeads * kHeadDim, kRank = 5;

std::unique_ptr<Attention> build_gated(const std::string& name) {
  std::map<std::string, ParamValue> given;
  if (name == "gla") given["gate_rank"] = kRank;
  return find_variant(name).build({kHeads, kHeadDim, 16, true, 7, {}}, given);
}

std::map<std::string, Tensor> named(const std::vector<Weight>& weights) {
  std::map<std::string, Tensor> all;
  for (const Weight& weight : weights) {
    EXPECT_TRUE(weight.learned) << weight.name;
    all[weight.name] = weight.value.value();
  }
  return all;
}

// x·W₁·W₂ + b, one number after the other.
TEST(GateProjections, AreTwoProductsAndABias) {
  const auto gla = build_gated("gla");
  const GateProjections projections(*gla, kWidth, "cross.", 1);
  const auto weights = named(projections.weights());
  ASSERT_EQ(weights.size(), 3u);
  const Tensor down = weights.at("cross.gate.decay.down"), up = weights.at("cross.gate.decay.up"),
               bias = weights.at("cross.gate.decay.bias");
  EXPECT_EQ(down.shape(), (Shape{kWidth, kRank}));
  EXPECT_EQ(up.shape(), (Shape{kRank, kWidth}));
  for (int64_t i = 0; i < kWidth; ++i) {
    EXPECT_EQ(bias[i], 0);
    bias[i] = static_cast<real>(i);
  }
  const Tensor x = Tensor::normal({2, 6, kWidth}, rng(1, "x"));
  const GateVars made = projections.of(Var(x));
  const std::span<const Var> gates = made;
  ASSERT_EQ(gates.size(), 1u);
  const Tensor got = gates[0].value();
  ASSERT_EQ(got.shape(), (Shape{2, kHeads, 6, kHeadDim}));
  for (int64_t i = 0; i < got.size(); ++i) {
    const int64_t c = i % kHeadDim, t = i / kHeadDim % 6, h = i / kHeadDim / 6 % kHeads;
    const int64_t row = i / kHeadDim / 6 / kHeads * 6 + t, column = h * kHeadDim + c;
    double want = static_cast<double>(column);
    for (int64_t r = 0; r < kRank; ++r) {
      double middle = 0;
      for (int64_t w = 0; w < kWidth; ++w)
        middle +=
            static_cast<double>(x[row * kWidth + w]) * static_cast<double>(down[w * kRank + r]);
      want += middle * static_cast<double>(up[r * kWidth + column]);
    }
    EXPECT_NEAR(got[i], want, 1e-4);
  }
}

TEST(GateProjections, StartWithTheBiasOfTheVariant) {
  const auto mamba2 = build_gated("mamba2");
  const auto weights = named(GateProjections(*mamba2, kWidth, "", 1).weights());
  ASSERT_EQ(weights.size(), 2u);
  EXPECT_EQ(weights.at("gate.dt").shape(), (Shape{kWidth, kHeads}));
  for (int64_t h = 0; h < kHeads; ++h)
    EXPECT_EQ(weights.at("gate.dt.bias")[h],
              static_cast<real>(mamba2->gates()[0].bias[static_cast<size_t>(h)]));
  EXPECT_TRUE(GateProjections(*build_gated("full"), kWidth, "", 1).weights().empty());
}

// A layer pays for the gates that its attention reads; attention alone does not.
TEST(GateProjections, AreCountedByALayer) {
  for (const char* name : {"gla", "mamba2"})
    for (const ScopeKind scope : {ScopeKind::attention, ScopeKind::layer, ScopeKind::model})
      for (const Mode mode : {Mode::forward, Mode::train}) {
        Workload workload({.variant = &find_variant(name),
                           .length = 48,
                           .batch = 2,
                           .heads = 4,
                           .head_dim = 16,
                           .mode = mode,
                           .scope = scope,
                           .causal = true});
        const bool exact = mode == Mode::forward || scope == ScopeKind::attention;
        EXPECT_NEAR(counted_flops(workload) / workload.flops(), 1, exact ? 0.01 : 0.1)
            << name << " " << to_string(scope) << " " << to_string(mode);
      }
  const auto weights_of = [](const char* name) {
    Workload workload({.variant = &find_variant(name), .length = 8, .scope = ScopeKind::layer});
    return measure_memory(workload).weights_bytes / static_cast<int64_t>(sizeof(real));
  };
  constexpr int64_t kOfWorkload = 4 * 64;  // its width
  const int64_t without = weights_of("linear");
  EXPECT_NEAR(weights_of("gla") - without, 2 * 16 * kOfWorkload + kOfWorkload, 64);
  EXPECT_NEAR(weights_of("mamba2") - without, 4 * kOfWorkload + 4 + 4, 64);
}

// Whether token 3 came before, which the state must hold: the loss falls, and every weight of a
// gate moves.
TEST(GateProjections, AreTrained) {
  constexpr int64_t kBatch = 16, kLength = 12;
  for (const char* name : {"gla", "mamba2"}) {
    ModelConfig config;
    config.layer.variant = &find_variant(name);
    config.layer.width = 32;
    config.layer.heads = 2;
    config.layer.causal = true;
    config.vocab = 8;
    config.length = kLength;
    config.classes = 2;
    config.per_token = true;
    config.seed = 2;
    const Encoder model(config);
    std::vector<Var> learned;
    std::map<std::string, Tensor> before;
    for (const Weight& weight : model.weights()) {
      if (!weight.learned) continue;
      learned.push_back(weight.value);
      if (weight.name.find("gate.") != std::string::npos)
        before[weight.name] = weight.value.value().clone();
    }
    ASSERT_FALSE(before.empty());
    AdamW optimizer(learned, {});
    Rng stream = rng(1, "seen");
    double first = 0, last = 0;  // mean loss of the first and of the last ten steps
    for (int step = 0; step < 150; ++step) {
      Batch batch{.size = kBatch, .length = kLength};
      for (int64_t b = 0; b < kBatch; ++b) {
        int32_t seen = 0;
        for (int64_t t = 0; t < kLength; ++t) {
          batch.tokens.push_back(static_cast<int32_t>(stream.between(1, 7)));
          if (batch.tokens.back() == 3) seen = 1;
          batch.targets.push_back(seen);
        }
      }
      const Var loss = cross_entropy(model.forward(batch), batch.targets);
      const double value = static_cast<double>(loss.value()[0]);
      if (step < 10) first += value / 10;
      if (step >= 140) last += value / 10;
      loss.backward();
      optimizer.step(5e-3);
    }
    EXPECT_LT(last, 0.5 * first) << name;
    for (const Weight& weight : model.weights()) {
      const auto start = before.find(weight.name);
      if (start == before.end()) continue;
      double moved = 0;
      for (int64_t i = 0; i < start->second.size(); ++i)
        moved = std::max(moved, std::abs(static_cast<double>(weight.value.value()[i]) -
                                         static_cast<double>(start->second[i])));
      EXPECT_GT(moved, 1e-3) << name << " " << weight.name;
    }
  }
}

}  // namespace
}  // namespace attn::gate_projections_test
