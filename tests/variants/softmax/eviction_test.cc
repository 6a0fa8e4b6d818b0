// Decoders that forget beside what they are made of: a window, exact attention, uniform draws; what
// they hold; and their parameters. The check `decode` compares them with the reference.
#include "variants/softmax/eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "variants/api/forgetting.h"
#include "variants/catalog.h"
#include "variants/softmax/softmax_decoder.h"

namespace attn::eviction_test {
namespace {

constexpr int64_t kLength = 90;
const Shape kPosition{1, 2, 2, 8};

struct Row {
  Tensor q, k, v, out;
};
Row row_at(int64_t i, int64_t dim = 8) {
  const auto index = static_cast<uint64_t>(i);
  return {Tensor::normal({1, 4, 1, dim}, rng(1, "q", index)),
          Tensor::normal({1, 2, 1, dim}, rng(1, "k", index)),
          Tensor::normal({1, 2, 1, dim}, rng(1, "v", index)), Tensor({1, 4, 1, dim})};
}

// The largest difference of the answers of the steps.
double difference(Decoder& a, Decoder& b, int64_t dim = 8) {
  double most = 0;
  for (int64_t i = 0; i < kLength; ++i) {
    const Row row = row_at(i, dim);
    const Tensor other(row.out.shape());
    a.step(row.q, row.k, row.v, row.out);
    b.step(row.q, row.k, row.v, other);
    for (int64_t c = 0; c < other.size(); ++c)
      most = std::max(most, std::abs(static_cast<double>(row.out[c] - other[c])));
  }
  return most;
}

TEST(Eviction, RecentIsAWindow) {
  const auto recent = evicting_softmax_decoder(kPosition, kLength, {Evict::recent, 10}),
             window = softmax_decoder(kPosition, kLength, 10),
             wider = softmax_decoder(kPosition, kLength, 11);
  EXPECT_LT(difference(*recent, *window), 1e-5);
  const auto again = evicting_softmax_decoder(kPosition, kLength, {Evict::recent, 10});
  EXPECT_GT(difference(*again, *wider), 1e-3);
}

TEST(Eviction, ABudgetOfAllPositionsForgetsNothing) {
  for (const auto& each : names_of(Evict{})) {
    if (each.value == Evict::none) continue;
    const auto some = evicting_softmax_decoder(kPosition, kLength, {each.value, 96}),
               all = softmax_decoder(kPosition, kLength);
    EXPECT_LT(difference(*some, *all), 1e-5) << each.name;
  }
}

// The values of wide rows are added in several pieces.
TEST(Eviction, WideRows) {
  const Shape wide{1, 2, 2, 128};
  const auto some = evicting_softmax_decoder(wide, kLength, {Evict::h2o, 96}),
             all = softmax_decoder(wide, kLength);
  EXPECT_LT(difference(*some, *all, 128), 1e-5);
}

TEST(Eviction, HoldsTheBudgetAndNotTheSequence) {
  for (const Evict method : {Evict::recent, Evict::h2o, Evict::tova, Evict::norm}) {
    const Eviction eviction{method, 16};
    const auto small = evicting_softmax_decoder(kPosition, 100, eviction),
               large = evicting_softmax_decoder(kPosition, 100000, eviction);
    EXPECT_EQ(small->state_bytes(), large->state_bytes()) << name_of(method);
    EXPECT_LE(small->state_bytes(), 2 * 17 * (17 * int64_t{sizeof(real)} + 12));
  }
}

// A prompt needs room until it ends; then its room is given back.
TEST(Eviction, APromptIsHeldUntilTheFirstStep) {
  const auto decoder = evicting_softmax_decoder(kPosition, kLength, {Evict::norm, 8});
  const int64_t before = decoder->state_bytes();
  decoder->extend(Tensor::normal({1, 2, 60, 8}, rng(2, "k")),
                  Tensor::normal({1, 2, 60, 8}, rng(2, "v")));
  EXPECT_GT(decoder->state_bytes(), 5 * before);
  const Row row = row_at(0);
  decoder->step(row.q, row.k, row.v, row.out);
  EXPECT_EQ(decoder->state_bytes(), before);
}

TEST(Eviction, QueriesOfAPromptAreAskedFor) {
  const auto decoder = evicting_softmax_decoder(kPosition, kLength, {Evict::tova, 8});
  EXPECT_TRUE(weighs_prompts(*decoder));
  const Tensor keys({1, 2, 3, 8});
  EXPECT_THROW(decoder->extend(keys, keys), Error);
  EXPECT_FALSE(weighs_prompts(*evicting_softmax_decoder(kPosition, kLength, {Evict::norm, 8})));
}

// Exact attention over the positions `seen`, of query head h of a step; rows are those so far.
double off_by(const std::vector<Row>& rows, int64_t h, const std::vector<int32_t>& seen) {
  const Row& last = rows.back();
  std::vector<double> sums(8, 0.0);
  double total = 0;
  for (const int32_t j : seen) {
    const Row& row = rows[static_cast<size_t>(j)];
    double logit = 0;
    for (int64_t c = 0; c < 8; ++c)
      logit += static_cast<double>(last.q[h * 8 + c]) * static_cast<double>(row.k[h / 2 * 8 + c]);
    const double weight = std::exp(logit / std::sqrt(8.0));
    total += weight;
    for (int64_t c = 0; c < 8; ++c)
      sums[static_cast<size_t>(c)] += weight * static_cast<double>(row.v[h / 2 * 8 + c]);
  }
  double most = 0;
  for (int64_t c = 0; c < 8; ++c) {
    const double answer = static_cast<double>(last.out[h * 8 + c]);
    most = std::max(most, std::abs(sums[static_cast<size_t>(c)] / total - answer));
  }
  return most;
}

TEST(Eviction, ToldPositionsAreThoseThatAStepSees) {
  constexpr int64_t kBudget = 32;
  for (const auto& each : names_of(Evict{})) {
    if (each.value == Evict::none) continue;
    const bool forgets = each.value != Evict::snapkv;  // which has no prompt here
    const auto decoder = evicting_softmax_decoder(kPosition, kLength, {each.value, kBudget});
    const auto& teller = dynamic_cast<const TellsPositions&>(*decoder);
    std::vector<Row> rows;
    for (int64_t i = 0; i < kLength; ++i) {
      const Row& row = rows.emplace_back(row_at(i));
      decoder->step(row.q, row.k, row.v, row.out);
      const std::vector<std::vector<int32_t>> seen = teller.positions_seen(row.q);
      ASSERT_EQ(seen.size(), 4U);
      for (int64_t h = 0; h < 4; ++h) {
        const std::vector<int32_t>& own = seen[static_cast<size_t>(h)];
        ASSERT_FALSE(own.empty()) << each.name;
        EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
        EXPECT_EQ(own.back(), i);
        EXPECT_LE(own.size(), static_cast<size_t>(forgets ? kBudget + 1 : kLength)) << each.name;
        EXPECT_LT(off_by(rows, h, own), 1e-5) << each.name << ", step " << i << ", head " << h;
      }
    }
  }
  const auto decoder = evicting_softmax_decoder(kPosition, kLength, {Evict::norm, 8});
  const Tensor keys({1, 2, 3, 8});
  decoder->extend(keys, keys);
  EXPECT_THROW(dynamic_cast<const TellsPositions&>(*decoder).positions_seen(keys), Error);
}

TEST(Eviction, AShareFollowsTheLength) {
  const Eviction third{Evict::recent, 0.3};
  EXPECT_EQ(third.positions(10), 3);
  EXPECT_EQ(third.positions(1), 1);
  EXPECT_EQ(third.positions(100), 30);
  EXPECT_EQ((Eviction{Evict::recent, 64}).positions(5), 64);
}

// Of 4096 draws, each tenth gets a tenth within 5 deviations.
TEST(Eviction, DrawsAreUniform) {
  constexpr int kDraws = 4096, kBins = 10;
  std::vector<int> counts(kBins, 0);
  std::set<double> distinct;
  for (int i = 0; i < kDraws; ++i) {
    const double draw = eviction_draw(3, i % 4, i / 4);
    distinct.insert(draw);
    ++counts[static_cast<size_t>(draw * kBins)];
  }
  EXPECT_EQ(distinct.size(), static_cast<size_t>(kDraws));
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 10.0, 5 * std::sqrt(kDraws * 0.09));
  EXPECT_NE(eviction_draw(3, 0, 1), eviction_draw(4, 0, 1));
}

TEST(Eviction, ParametersThatMeanNothing) {
  const VariantInfo& full = find_variant("full");
  const auto params = [&](const std::map<std::string, ParamValue>& given) {
    return Params(full.name, full.params, given);
  };
  EXPECT_THROW(params({{"budget", 32.0}}), Error) << "a budget without eviction";
  EXPECT_THROW(params({{"evict", std::string("snapkv")}, {"when", std::string("prompt")}}), Error);
  const AttentionShape shape{.q_len = 9, .kv_len = 9, .head_dim = 8, .causal = true};
  const auto why = full.why_not(shape, params({{"evict", std::string("h2o")}, {"budget", 6.5}}));
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("6.5"), std::string::npos) << *why;
  AttentionShape typed = shape;
  typed.cache = CacheType::int8;
  EXPECT_TRUE(full.why_no_decoder(typed, params({{"evict", std::string("h2o")}})));
  EXPECT_FALSE(forgets_of(full, params({})));
  EXPECT_EQ(forgets_of(full, params({{"evict", std::string("h2o")}}))->from, 65);
}

}  // namespace
}  // namespace attn::eviction_test
