// Exact variants are near zero, others are not, figures agree with cases worked out by hand, and
// needles stand out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "harness/measure/fidelity.h"
#include "harness/measure/inputs.h"
#include "harness/measure/ranks.h"
#include "variants/catalog.h"

namespace attn::fidelity_test {
namespace {

WorkloadSpec spec_of(const VariantInfo& info, bool causal = false) {
  WorkloadSpec spec;
  spec.variant = &info;
  spec.length = 96;
  spec.batch = 2;
  spec.heads = 2;
  spec.head_dim = 16;
  spec.causal = causal;
  spec.seed = 3;
  return spec;
}

// Not causal where the variant can be so.
WorkloadSpec runnable(const VariantInfo& info) {
  WorkloadSpec spec = spec_of(info);
  spec.causal = info.why_not(spec.shape(), spec.chosen()).has_value();
  return spec;
}

// Rounding of float sums of 96 products: a few 1e-7 of the whole; logits of some tens multiply it
// in the needle.
TEST(Fidelity, FullIsExact) {
  for (const bool causal : {false, true}) {
    for (const InputKind kind : {InputKind::random, InputKind::needle}) {
      const FidelityFigures found =
          measure_fidelity(spec_of(find_variant("full"), causal), kind, 1);
      EXPECT_LE(found.relative_error, 2e-5);
      EXPECT_NEAR(found.cosine, 1, 1e-6);
      ASSERT_TRUE(found.weights_kl.has_value());
      EXPECT_NEAR(*found.weights_kl, 0, 1e-5);
    }
  }
}

TEST(Fidelity, ApproximationsAreNotAndGetWorseWithScale) {
  const WorkloadSpec spec = spec_of(find_variant("linear"));
  double before = 0;
  for (const double scale : {0.25, 1.0, 2.0}) {
    const FidelityFigures found = measure_fidelity(spec, InputKind::random, scale);
    EXPECT_GT(found.relative_error, before);
    EXPECT_GT(*found.weights_kl, 0);
    before = found.relative_error;
  }
  EXPECT_GT(before, 0.5);
}

TEST(Fidelity, WeightsAreComparedOnlyWhereTheyAreADistribution) {
  for (const VariantInfo& info : all_variants()) {
    if (why_no_fidelity(spec_of(info))) continue;
    const WorkloadSpec spec = runnable(info);
    const FidelityFigures found = measure_fidelity(spec, InputKind::random, 0.5);
    EXPECT_EQ(found.weights_kl.has_value(), info.convex(spec.chosen(), spec.causal)) << info.name;
    EXPECT_TRUE(std::isfinite(found.relative_error)) << info.name;
    EXPECT_LE(std::abs(found.cosine), 1 + 1e-6) << info.name;
  }
}

// Answers every query with the mean of the values, times a factor.
class Mean final : public Attention {
 public:
  explicit Mean(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var&, const Var&, const Var& v, const Mask&) const override {
    const Tensor out = Tensor::zeros(v.shape());
    const int64_t n = v.dim(2), dim = v.dim(3);
    for (int64_t i = 0; i < v.value().size(); ++i) {
      const int64_t matrix = i / (n * dim), column = i % dim;
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += v.value()[(matrix * n + j) * dim + column];
      out[i] = static_cast<real>(params().number("factor") * sum / static_cast<double>(n));
    }
    return Var(out);
  }
  Cost do_cost(const AttentionShape&) const override { return {}; }
};

VariantInfo mean_variant() {
  VariantInfo info;
  info.name = "mean";
  info.traits.convex = true;
  info.params = {ParamSpec("factor", 1.0, "of the output", -10, 10)};
  info.make = make_as<Mean>;
  return info;
}

// At scale 1e-6 exact attention is the mean of the values too.
TEST(Fidelity, FiguresOfAKnownCase) {
  const VariantInfo info = mean_variant();
  WorkloadSpec spec = spec_of(info);
  spec.length = 24;
  FidelityFigures found = measure_fidelity(spec, InputKind::random, 1e-6);
  EXPECT_LE(found.relative_error, 1e-5);
  EXPECT_NEAR(found.cosine, 1, 1e-6);
  EXPECT_NEAR(*found.weights_kl, 0, 1e-6);

  spec.params = {{"factor", -2.0}};
  found = measure_fidelity(spec, InputKind::random, 1e-6);
  EXPECT_NEAR(found.relative_error, 3, 1e-4);
  EXPECT_NEAR(found.cosine, -1, 1e-6);
  EXPECT_NEAR(*found.weights_kl, std::log(1e6), 1e-3);  // no weight at all but the uniform share

  spec.params = {{"factor", 0.5}};
  found = measure_fidelity(spec, InputKind::random, 1e-6);
  EXPECT_NEAR(found.relative_error, 0.5, 1e-5);
  EXPECT_NEAR(*found.weights_kl, std::log(2), 1e-3);
}

// All the weight that the needle's own key gets, by a softmax written out here.
TEST(Fidelity, NeedlesGetNineTenthsOfTheWeight) {
  for (const bool causal : {false, true}) {
    const WorkloadSpec spec = spec_of(find_variant("full"), causal);
    const FidelityInputs in = fidelity_inputs(spec, InputKind::needle, 1);
    const std::vector<int64_t> places = needle_places(spec);
    const int64_t n = spec.length, dim = spec.head_dim;
    int64_t moved = 0;
    for (int64_t row = 0; row < static_cast<int64_t>(places.size()); ++row) {
      const int64_t visible = causal ? row % n + 1 : n;
      std::vector<double> logits;
      for (int64_t j = 0; j < visible; ++j) {
        double logit = 0;
        for (int64_t c = 0; c < dim; ++c)
          logit += double{in.q[row * dim + c]} * in.k[(row / n * n + j) * dim + c];
        logits.push_back(logit / std::sqrt(static_cast<double>(dim)));
      }
      const int64_t place = places[static_cast<size_t>(row)];
      ASSERT_LT(place, visible);
      double total = 0;
      for (const double logit : logits)
        total += std::exp(logit - logits[static_cast<size_t>(place)]);
      EXPECT_GE(1 / total, 0.9 - 1e-5) << row;
      moved += place != row % n;
    }
    EXPECT_GT(moved, n);  // the places are not simply the queries' own
  }
}

// Rows behind the length of a sequence are not compared, and the layers are pooled by row.
TEST(Fidelity, LayersOfAModelArePooledAndPaddingIsLeftOut) {
  WorkloadSpec spec = spec_of(find_variant("linear"));
  spec.batch = 1;
  const FidelityInputs one = fidelity_inputs(spec, InputKind::random, 1);
  const ModelFidelity same = measure_fidelity(spec, std::vector{one, one});
  const FidelityFigures alone = measure_fidelity(spec, InputKind::random, 1);
  ASSERT_EQ(same.layers.size(), 2U);
  EXPECT_EQ(same.layers[1].figures.relative_error, alone.relative_error);
  EXPECT_NEAR(same.all.relative_error, alone.relative_error, 1e-9);
  EXPECT_NEAR(*same.all.weights_kl, *alone.weights_kl, 1e-9);

  FidelityInputs padded = one;
  padded.lengths = {40};
  WorkloadSpec shorter = spec;
  shorter.length = 40;
  FidelityInputs cut;
  for (auto [from, to] : {std::pair(&one.q, &cut.q), {&one.k, &cut.k}, {&one.v, &cut.v}}) {
    *to = Tensor({1, 2, 40, 16});
    for (int64_t head = 0; head < 2; ++head)
      std::copy_n(from->data() + head * 96 * 16, 40 * 16, to->data() + head * 40 * 16);
  }
  const ModelFidelity by_mask = measure_fidelity(spec, std::vector{padded});
  const ModelFidelity by_cut = measure_fidelity(shorter, std::vector{cut});
  EXPECT_NEAR(by_mask.all.relative_error, by_cut.all.relative_error, 1e-6);
  EXPECT_NEAR(by_mask.all.cosine, by_cut.all.cosine, 1e-6);
  EXPECT_NEAR(*by_mask.layers[0].effective_rank, *by_cut.layers[0].effective_rank, 1e-6);
}

// differential subtracts more in later layers.
TEST(Fidelity, EachLayerOfAModelIsItsOwn) {
  const WorkloadSpec spec = spec_of(find_variant("differential"));
  const FidelityInputs one = fidelity_inputs(spec, InputKind::random, 1);
  const ModelFidelity both = measure_fidelity(spec, std::vector{one, one});
  EXPECT_GT(std::abs(both.layers[1].figures.relative_error - both.layers[0].figures.relative_error),
            1e-3);
}

// With queries of zeros every key has the same weight: the mass kept is the share of keys seen.
TEST(Fidelity, MassKeptIsTheShareOfWeightThatAVariantSees) {
  WorkloadSpec spec = spec_of(find_variant("truncated"));
  spec.params = {{"window", int64_t{5}}};
  FidelityInputs in = fidelity_inputs(spec, InputKind::random, 1);
  in.q = Tensor::zeros(in.q.shape());
  double seen = 0;
  for (int64_t i = 0; i < 96; ++i)
    seen += static_cast<double>(std::min<int64_t>(95, i + 5) - std::max<int64_t>(0, i - 5) + 1);
  const ModelFidelity found = measure_fidelity(spec, std::vector{in});
  EXPECT_NEAR(*found.all.mass_kept, seen / (96 * 96), 1e-9);
  EXPECT_NEAR(*found.layers[0].effective_rank, 1, 1e-6) << "all rows are the same";
}

TEST(Fidelity, EffectiveRanksOfKnownMatrices) {
  EXPECT_NEAR(effective_rank({1, 0, 0, 0, 1, 0, 0, 0, 1}, 3), 3, 1e-12);
  EXPECT_NEAR(effective_rank({1, 2, 2, 4}, 2), 1, 1e-12);
  EXPECT_NEAR(effective_rank({0, 3, 1, 0}, 2),
              std::exp(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)), 1e-12);
  EXPECT_EQ(effective_rank({0, 0, 0, 0}, 2), 0);
  for (const int64_t n : {64, 300, 512})  // of which a divide and conquer makes NaN
    EXPECT_NEAR(effective_rank(
                    std::vector<double>(static_cast<size_t>(n * n), 1 / static_cast<double>(n)), n),
                1, 1e-9);
}

TEST(Fidelity, NumericalRanksOfKnownMatrices) {
  EXPECT_EQ(numerical_rank({1, 0, 0, 0, 1, 0, 0, 0, 1}, 3), 3);
  EXPECT_EQ(numerical_rank({1, 2, 2, 4}, 2), 1);
  EXPECT_EQ(numerical_rank({0, 0, 0, 0}, 2), 0);
  const double least = 2 * std::numeric_limits<real>::epsilon();  // of two rows
  EXPECT_EQ(numerical_rank({1, 0, 0, 0.9 * least}, 2), 1) << "may be rounding";
  EXPECT_EQ(numerical_rank({100, 0, 0, 110 * least}, 2), 2);
}

// The variant's parameters, at 96 keys in 2 sequences of 2 heads.
FidelityFigures budget_of(const std::string& name, const std::map<std::string, ParamValue>& params,
                          bool causal = false) {
  WorkloadSpec spec = spec_of(find_variant(name), causal);
  spec.params = params;
  return measure_fidelity(spec, InputKind::random, 1);
}

TEST(Fidelity, BudgetsOfKnownVariants) {
  const FidelityFigures full = budget_of("full", {}), causal = budget_of("full", {}, true);
  EXPECT_EQ(full.keys_read, 96);
  EXPECT_EQ(causal.keys_read, 97 / 2.0);
  EXPECT_GT(*full.weights_rank, 90);

  const FidelityFigures window = budget_of("truncated", {{"window", int64_t{5}}});
  const double ends = 2 * (5 + 4 + 3 + 2 + 1);  // what 11 keys miss at both ends
  EXPECT_DOUBLE_EQ(*window.keys_read, 11 - ends / 96);

  const FidelityFigures projected = budget_of("linformer", {{"rank", int64_t{7}}});
  EXPECT_FALSE(projected.weights_kl) << "some weights are negative";
  EXPECT_EQ(projected.keys_read, 96);
  EXPECT_EQ(projected.weights_rank, 7);

  const FidelityFigures features = budget_of("performer", {{"features", int64_t{24}}});
  EXPECT_EQ(features.keys_read, 96);
  EXPECT_EQ(features.weights_rank, 24);
  EXPECT_EQ(budget_of("linear", {}).weights_rank, 16) << "as many as the features of a head";
}

TEST(Fidelity, TheMeanReadsAllKeysWithRankOne) {
  const VariantInfo info = mean_variant();
  const FidelityFigures found = measure_fidelity(spec_of(info), InputKind::random, 1);
  EXPECT_EQ(found.keys_read, 96);
  EXPECT_EQ(found.weights_rank, 1);
}

// Channels have weights of their own or are mixed, or outputs are not linear in the values.
TEST(Fidelity, WithoutOneMatrixOfWeightsThereIsNoBudget) {
  for (const char* name : {"aft", "hyena", "memory_compressed", "ttt_linear"}) {
    const FidelityFigures found = budget_of(name, {}, true);
    EXPECT_FALSE(found.keys_read) << name;
    EXPECT_FALSE(found.weights_rank) << name;
  }
}

// Every variant of one matrix of weights is found to have it: rounding does not hide it.
TEST(Fidelity, DistributionsHaveABudget) {
  for (const VariantInfo& info : all_variants()) {
    const WorkloadSpec spec = runnable(info);
    if (why_no_fidelity(spec) || !info.convex(spec.chosen(), spec.causal)) continue;
    for (const double scale : {0.25, 4.0}) {
      const FidelityFigures found = measure_fidelity(spec, InputKind::random, scale);
      ASSERT_TRUE(found.keys_read.has_value()) << info.name;
      EXPECT_GT(*found.keys_read, 0) << info.name;
      EXPECT_LE(*found.keys_read, 96) << info.name;
      EXPECT_LE(*found.weights_rank, 96) << info.name;
    }
  }
}

TEST(Fidelity, BudgetsOfLayersArePooledAndPaddingIsLeftOut) {
  WorkloadSpec spec = spec_of(find_variant("truncated"));
  spec.params = {{"window", int64_t{5}}};
  const FidelityInputs whole = fidelity_inputs(spec, InputKind::random, 1);
  FidelityInputs padded = whole;
  padded.lengths = {40, 20};
  const ModelFidelity found = measure_fidelity(spec, std::vector{whole, padded});
  const double rows = 2 * 96, valid = 40 + 20, ends = 2 * (5 + 4 + 3 + 2 + 1);
  EXPECT_DOUBLE_EQ(*found.layers[0].figures.keys_read, 11 - ends / 96);
  EXPECT_DOUBLE_EQ(*found.layers[1].figures.keys_read, 11 - 2 * ends / valid);
  EXPECT_DOUBLE_EQ(*found.all.keys_read, 11 - 4 * ends / (rows + valid));
  EXPECT_LE(*found.layers[1].figures.weights_rank, 30) << "the mean of 40 and 20 rows";
  EXPECT_DOUBLE_EQ(
      *found.all.weights_rank,
      (*found.layers[0].figures.weights_rank + *found.layers[1].figures.weights_rank) / 2);
}

TEST(Fidelity, OfMoreKeysThanTheLongestSpectrumThereIsNoRank) {
  WorkloadSpec spec = spec_of(find_variant("full"));
  spec.batch = spec.heads = 1;
  spec.length = kLongestSpectrum + 1;
  const FidelityFigures found = measure_fidelity(spec, InputKind::random, 1);
  EXPECT_EQ(found.keys_read, kLongestSpectrum + 1);
  EXPECT_FALSE(found.weights_rank);
}

TEST(Fidelity, NaNIsNotHidden) {
  VariantInfo info = mean_variant();
  info.params = {ParamSpec("factor", 1.0, "of the output", -10, 1e300)};
  WorkloadSpec spec = spec_of(info);
  spec.params = {{"factor", 1e300}};  // infinite in float
  EXPECT_FALSE(std::isfinite(measure_fidelity(spec, InputKind::random, 1).relative_error));
  EXPECT_THROW(measure_fidelity(spec, InputKind::random, 0), Error);
}

}  // namespace
}  // namespace attn::fidelity_test
