// Blocks of papers written out, one position after the other, in double: with nothing of the
// library or of its references but the weights. And what the catalogue says of blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/ops.h"
#include "variants/api/mixer.h"
#include "variants/block/block.h"
#include "variants/catalog.h"
#include "tests/variants/block/written_block.h"

namespace attn::paper_block_test {
namespace {

using namespace written_block;

// Dao and Gu 2024, figure 6: B, C of one head for all; twice as many heads as the layer has.
TEST(PaperBlock, Mamba2IsWhatThePaperWrites) {
  const Built b("mamba2");
  constexpr int64_t heads = 2 * kHeads, inner = heads * kDim;
  std::vector<Rows> state(heads, Rows(kDim, Row(kDim, 0)));
  Rows wanted;
  for (int64_t t = 0; t < kLength; ++t) {
    const Row& x = b.x[static_cast<size_t>(t)];
    const Row c = b.convolved(t, "W_q", "q.convolution", true),
              in = b.convolved(t, "W_k", "k.convolution", true),
              v = b.convolved(t, "W_v", "v.convolution", true), z = b.times(x, "gate"),
              raw = b.times(x, "gate.dt");
    ASSERT_EQ(c.size(), static_cast<size_t>(kDim));
    Row y(inner, 0);
    for (int64_t h = 0; h < heads; ++h) {
      const auto of = static_cast<size_t>(h);
      const double delta = softplus(raw[of] + b.at("gate.dt.bias", h));
      const double kept = std::exp(-std::exp(b.at("mixer.A_log", h)) * delta);
      for (int64_t p = 0; p < kDim; ++p) {
        const auto at = static_cast<size_t>(h * kDim + p);
        for (int64_t n = 0; n < kDim; ++n) {
          double& s = state[of][static_cast<size_t>(n)][static_cast<size_t>(p)];
          s = kept * s + in[static_cast<size_t>(n)] * delta * v[at];
          y[at] += c[static_cast<size_t>(n)] * s;
        }
        y[at] = (y[at] + b.at("D", h) * v[at]) * silu(z[at]);
      }
    }
    const double size = size_of(y.data(), inner, 1e-5, true);
    for (int64_t i = 0; i < inner; ++i) y[static_cast<size_t>(i)] *= b.at("norm.gain", i) / size;
    wanted.push_back(b.times(y, "W_o"));
  }
  b.expect(wanted);
}

// Yang, Kautz and Hatamizadeh 2024, figure 1: values twice as wide as keys.
TEST(PaperBlock, GatedDeltaNetIsWhatThePaperWrites) {
  const Built b("gated_deltanet");
  constexpr int64_t wide = 2 * kDim;
  std::vector<Rows> state(kHeads, Rows(kDim, Row(wide, 0)));
  Rows wanted;
  for (int64_t t = 0; t < kLength; ++t) {
    const Row& x = b.x[static_cast<size_t>(t)];
    const Row q = b.convolved(t, "W_q", "q.convolution", false),
              k = b.convolved(t, "W_k", "k.convolution", false),
              v = b.convolved(t, "W_v", "v.convolution", false), z = b.times(x, "gate"),
              raw = b.times(x, "gate.dt"), rate = b.times(x, "gate.beta");
    Row y(kHeads * wide, 0);
    for (int64_t h = 0; h < kHeads; ++h) {
      const auto of = static_cast<size_t>(h);
      const double kept =
          std::exp(-std::exp(b.at("mixer.A_log", h)) * softplus(raw[of] + b.at("gate.dt.bias", h)));
      const double beta = 1 / (1 + std::exp(-rate[of]));
      const double *const query = q.data() + h * kDim, *const key = k.data() + h * kDim;
      const double of_query = size_of(query, kDim, 1e-6, false),
                   of_key = size_of(key, kDim, 1e-6, false);
      for (int64_t p = 0; p < wide; ++p) {
        const auto at = static_cast<size_t>(h * wide + p), column = static_cast<size_t>(p);
        double held = 0;
        for (int64_t n = 0; n < kDim; ++n) {
          double& s = state[of][static_cast<size_t>(n)][column];
          s *= kept;
          held += key[n] / of_key * s;
        }
        for (int64_t n = 0; n < kDim; ++n) {
          double& s = state[of][static_cast<size_t>(n)][column];
          s += beta * key[n] / of_key * (v[at] - held);
          y[at] += query[n] / of_query * s / std::sqrt(static_cast<double>(kDim));
        }
      }
      const double size = size_of(y.data() + h * wide, wide, 1e-5, true);
      for (int64_t p = 0; p < wide; ++p) {
        const auto at = static_cast<size_t>(h * wide + p);
        y[at] *= b.at("norm.gain", p) / size * silu(z[at]);
      }
    }
    wanted.push_back(b.times(y, "W_o"));
  }
  b.expect(wanted);
}

TEST(PaperBlock, Rwkv7IsWhatThePaperWrites) {
  const Built b("rwkv7");
  b.expect(WrittenRwkv7{b}.answer({}));
  // max(32, 5·√width), in steps of 32.
  EXPECT_EQ(b.weights.at("gate.down").dim(1), 32);
}

// RWKV-LM: max(32, int(round(5·√C / 32) · 32)), where Python rounds 2.5 to 2; v with 1.7.
TEST(PaperBlock, Rwkv7HasTheRanksOfItsCode) {
  const VariantInfo info = paper_block(find_variant("rwkv7"));
  const std::map<int64_t, std::pair<int64_t, int64_t>> wanted = {
      {64, {32, 32}}, {256, {64, 32}}, {768, {128, 32}}, {2048, {224, 64}}};
  for (const auto& [width, ranks] : wanted) {
    const auto layer = info.build(
        {.heads = width / 64, .head_dim = 64, .causal = true, .params = {}, .receives = true}, {});
    std::map<std::string, int64_t> columns;
    for (const Weight& weight : layer->weights()) columns[weight.name] = weight.value.dim(-1);
    EXPECT_EQ(columns.at("gate.down"), ranks.first) << width;
    EXPECT_EQ(columns.at("first.down"), ranks.second) << width;
  }
}

// Arora et al. 2024, section 4.1: queries and keys of `dim` numbers of each head.
TEST(PaperBlock, TaylorIsWhatThePaperWrites) {
  constexpr int64_t narrow = 3;
  const Built b("taylor", {{"dim", narrow}});
  EXPECT_EQ(b.weights.size(), 4u);
  EXPECT_EQ(b.weights.at("W_q").shape(), (Shape{kWidth, kHeads * narrow}));
  Rows q, k, v, wanted;
  for (int64_t t = 0; t < kLength; ++t) {
    const Row& x = b.x[static_cast<size_t>(t)];
    q.push_back(b.times(x, "W_q")), k.push_back(b.times(x, "W_k")), v.push_back(b.times(x, "W_v"));
    Row y(kWidth, 0);
    for (int64_t h = 0; h < kHeads; ++h) {
      double total = 0;
      for (size_t j = 0; j < k.size(); ++j) {
        double s = 0;
        for (int64_t c = 0; c < narrow; ++c) {
          const auto of = static_cast<size_t>(h * narrow + c);
          s += q.back()[of] * k[j][of] / std::sqrt(static_cast<double>(narrow));
        }
        const double weight = 1 + s + s * s / 2;
        total += weight;
        for (int64_t c = 0; c < kDim; ++c) {
          const auto of = static_cast<size_t>(h * kDim + c);
          y[of] += weight * v[j][of];
        }
      }
      for (int64_t c = 0; c < kDim; ++c) y[static_cast<size_t>(h * kDim + c)] /= total;
    }
    wanted.push_back(b.times(y, "W_o"));
  }
  b.expect(wanted);
  // Wider than a head, they do not fit.
  const VariantInfo& block = with_paper_block(find_variant("taylor"));
  const AttentionShape shape{.q_len = 8, .kv_len = 8, .head_dim = kDim, .causal = true};
  EXPECT_TRUE(block.why_not(shape, Params(block.name, block.params)));
  EXPECT_FALSE(block.why_not(shape, Params(block.name, block.params, {{"dim", kDim}})));
}

// The unit is the layer: the block adds no weights and changes no number.
TEST(PaperBlock, GauIsTheUnitAlone) {
  const Built b("gau");
  const auto unit = find_variant("gau").build(
      {.heads = kHeads, .head_dim = kDim, .max_len = kLength, .causal = true}, {});
  for (const Weight& weight : unit->weights())
    weight.value.set_value(b.weights.at("mixer." + weight.name));
  EXPECT_EQ(b.weights.size(), unit->weights().size());
  const Tensor y = as_mixer(*unit)->mix(Var(b.rows), {.causal = true}).value(),
               found = as_mixer(*b.attention)->mix(Var(b.rows), {.causal = true}).value();
  for (int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], found[i]);
}

TEST(PaperBlock, TheCatalogueFindsBlocks) {
  const VariantInfo& mamba2 = find_variant("mamba2");
  const VariantInfo& block = with_paper_block(mamba2);
  EXPECT_EQ(&find_variant("mamba2[block=paper]"), &block);
  EXPECT_EQ(variant_named("mamba2[block=paper]"), &block);
  EXPECT_EQ(variant_named("nothing[block=paper]"), nullptr);
  EXPECT_EQ(plain_name(block.name), "mamba2");
  EXPECT_EQ(plain_name("mamba2"), "mamba2");
  EXPECT_TRUE(block.traits.mixer && !block.traits.gated);
  // The plain layer is the paper's.
  EXPECT_EQ(&with_paper_block(find_variant("full")), &find_variant("full"));
  // A block that is not built runs nothing, and says why.
  VariantInfo lacking = find_variant("full");
  lacking.lacks_block = "its rows are handed from layer to layer";
  const VariantInfo missing = paper_block(lacking);
  const auto why = missing.why_not({.q_len = 8, .kv_len = 8, .head_dim = 8, .causal = true},
                                   Params(missing.name, missing.params));
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("from layer to layer"), std::string::npos) << *why;
  const VariantInfo& stack = find_variant("full+mamba2[block=paper]");
  EXPECT_EQ(stack.name, "full+mamba2[block=paper]");
  EXPECT_EQ(plain_name(stack.name), stack.name);
  EXPECT_EQ(&find_variant(stack.name), &stack);
}

}  // namespace
}  // namespace attn::paper_block_test
