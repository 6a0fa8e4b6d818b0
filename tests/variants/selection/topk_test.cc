// Selection of the best keys and of the best blocks: topk and moba.
#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "tests/variants/selection/choices.h"

namespace attn::topk_test {
namespace {

// topk against lists that a search finds, its limits, equal logits, and the mass that it drops.

using bridge::array_of;
using choices::Array;
using choices::Choice;

Choice choice_of(const Array& q, const Array& k, int64_t keep, bool causal,
                 const std::vector<int64_t>& lengths) {
  Choice choice;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        std::vector<double> scores;
        for (int64_t j = 0; j < choices::visible(i, q.len, k.len, causal, lengths, b); ++j)
          scores.push_back(choices::product(q, k, b, h, i, j));
        choice.seen.push_back(choices::best(scores, keep, choice.margin));
      }
  return choice;
}

std::map<std::string, ParamValue> kept(int64_t keys) { return {{"keys", keys}}; }

TEST(TopK, EqualsItsOracle) {
  for (const int64_t keep : {1, 5, 32, 64})
    for (const int64_t n : {1, 2, 37, 131})
      for (const bool causal : {false, true})
        for (const std::vector<int64_t>& lengths :
             {std::vector<int64_t>{}, {n / 2, n}, {0, n - 1}}) {
          SCOPED_TRACE(testing::Message() << keep << " of " << n << (causal ? " causal" : "")
                                          << (lengths.empty() ? "" : " padded"));
          const Shape shape{2, 2, n, 5};
          const bridge::TwinCase c{"topk", kept(keep), {2, 2, n, n, 5, causal}, lengths};
          bridge::expect_twin(c, [&](const Attention&, const Tensor& q) {
            const Choice choice =
                choice_of(array_of(q), array_of(bridge::normal(shape, "k")), keep, causal, lengths);
            EXPECT_GT(choice.margin, 2e-6);  // no rounding, and no step of a difference, crosses it
            return [=](const std::vector<Array>& x) {
              return choices::attend(x[0], x[1], x[2], choice.seen);
            };
          });
        }
}

// A search over rows of more than a piece, and lists longer than a strip's.
TEST(TopK, EqualsItsOracleInLongRows) {
  for (const int64_t keep : {3, 40, 200, 500}) {
    const Tensor q = bridge::normal({1, 1, 60, 16}, "q"), k = bridge::normal({1, 1, 1100, 16}, "k"),
                 v = bridge::normal({1, 1, 1100, 16}, "v");
    const auto attention = find_variant("topk").build({1, 16, 1100, true, 3, {}}, kept(keep));
    const Choice choice = choice_of(array_of(q), array_of(k), keep, true, {});
    const Tensor got = choices::forward(*attention, q, k, v);
    const Array want = choices::attend(array_of(q), array_of(k), array_of(v), choice.seen);
    EXPECT_TRUE(bridge::relative_error(got, want.x) <= 200 * kEpsilon) << keep;
  }
}

TEST(TopK, OfEqualLogitsTheEarlierKeysAreKept) {
  for (const int64_t n : {70, 900}) {
    const Shape shape{1, 2, n, 4};
    const Tensor q = choices::coarse(shape, "q"), k = choices::coarse(shape, "k"),
                 v = bridge::normal(shape, "v");
    for (const int64_t keep : {1, 7, 50})
      for (const bool causal : {false, true}) {
        const auto attention = choices::build("topk", shape, causal, kept(keep));
        const Choice choice = choice_of(array_of(q), array_of(k), keep, causal, {});
        EXPECT_EQ(choice.margin, 0);
        const Array want = choices::attend(array_of(q), array_of(k), array_of(v), choice.seen);
        EXPECT_TRUE(bridge::relative_error(choices::forward(*attention, q, k, v), want.x) <=
                    100 * kEpsilon);
        const BFloat16Tensor rough =
            attention->forward(rounded(q), rounded(k), rounded(v), {causal, {}});
        EXPECT_TRUE(bridge::relative_error(widened(rough), want.x) <= 1.0 / 128);
      }
    const auto attention = choices::build("topk", shape, true, kept(7));
    choices::expect_decodes(*attention, q, k, v, n - 40);
  }
}

TEST(TopK, AllKeysAreFullAttentionAndOneKeyIsItsValue) {
  const Shape shape{2, 3, 50, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  for (const bool causal : {false, true}) {
    const Array full = oracle::softmax_attention(array_of(q), array_of(k), array_of(v), {causal});
    const Tensor all = choices::forward(*choices::build("topk", shape, causal, kept(50)), q, k, v);
    EXPECT_TRUE(bridge::relative_error(all, full.x) <= 100 * kEpsilon);
    const Tensor one = choices::forward(*choices::build("topk", shape, causal, kept(1)), q, k, v);
    const Choice choice = choice_of(array_of(q), array_of(k), 1, causal, {});
    for (int64_t row = 0; row < 2 * 3 * 50; ++row)
      for (int64_t c = 0; c < 8; ++c)
        ASSERT_EQ(one[row * 8 + c],
                  v[(row / 50 * 50 + choice.seen[static_cast<size_t>(row)][0]) * 8 + c]);
  }
}

// |o - full| <= 2·(mass dropped)·max|v|; rows that see no more than they keep are full.
TEST(TopK, IsOffByTheMassThatItDropsAtMost) {
  const int64_t n = 90, keep = 12;
  const Shape shape{1, 2, n, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const Array a = array_of(q), b = array_of(k), x = array_of(v);
  const Array full = oracle::softmax_attention(a, b, x, {true});
  const Choice choice = choice_of(a, b, keep, true, {});
  const Tensor got = choices::forward(*choices::build("topk", shape, true, kept(keep)), q, k, v);
  double most = 0;
  for (const double value : x.x) most = std::max(most, std::abs(value));
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < n; ++i) {
      double all = 0, taken = 0;
      for (int64_t j = 0; j <= i; ++j) {
        const double weight = std::exp(choices::product(a, b, 0, h, i, j) / std::sqrt(8.0));
        const std::vector<int64_t>& seen = choice.of(a, 0, h, i);
        all += weight;
        taken += std::find(seen.begin(), seen.end(), j) != seen.end() ? weight : 0;
      }
      for (int64_t c = 0; c < 8; ++c)
        ASSERT_LE(std::abs(static_cast<double>(got[(h * n + i) * 8 + c]) - full.at(0, h, i, c)),
                  2 * (1 - taken / all) * most + 40 * kEpsilon);
      if (i < keep) {
        ASSERT_NEAR(taken / all, 1, 1e-12);
      }
    }
}

TEST(TopK, TheFutureMovesNothing) {
  const auto attention = choices::build("topk", {1, 2, 150, 8}, true, kept(10));
  choices::expect_future_is_unseen(*attention, 150, {1, 47, 48, 49, 64, 149});
}

TEST(TopK, DecodesWhatItAnswersInParallel) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    const Tensor q = bridge::normal({2, 4, 140, 8}, "q"),
                 k = bridge::normal({2, kv_heads, 140, 8}, "k"),
                 v = bridge::normal({2, kv_heads, 140, 8}, "v");
    const auto attention = choices::build("topk", q.shape(), true, kept(9));
    for (const int64_t prefill : {0, 65, 139})
      choices::expect_decodes(*attention, q, k, v, prefill);
  }
}

// moba against lists that a search over plain means finds, its limits, and that neither later keys
// nor ties decide what is seen.

struct Setting {
  int64_t block, blocks;
};

std::map<std::string, ParamValue> params(const Setting& s) {
  return {{"block", s.block}, {"blocks", s.blocks}};
}

// The keys that each query sees.
Choice choice_of_blocks(const Array& q, const Array& k, const Setting& s,
                        const std::vector<int64_t>& lengths) {
  Choice choice;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        const int64_t valid = lengths.empty() ? q.len : lengths[static_cast<size_t>(b)];
        std::vector<double> scores;
        for (int64_t block = 0; block < i / s.block && block * s.block < valid; ++block) {
          const int64_t end = std::min(valid, (block + 1) * s.block);
          double sum = 0;
          for (int64_t j = block * s.block; j < end; ++j) sum += choices::product(q, k, b, h, i, j);
          scores.push_back(sum / static_cast<double>(end - block * s.block));
        }
        std::vector<int64_t> blocks = choices::best(scores, s.blocks - 1, choice.margin), keys;
        blocks.push_back(i / s.block);
        for (const int64_t block : blocks)
          for (int64_t j = block * s.block; j < std::min({(block + 1) * s.block, i + 1, valid});
               ++j)
            keys.push_back(j);
        choice.seen.push_back(keys);
      }
  return choice;
}

TEST(Moba, EqualsItsOracle) {
  for (const Setting& s : {Setting{4, 3}, {16, 2}, {16, 4}, {64, 2}, {5, 1}, {1, 9}, {70, 3}})
    for (const int64_t n : {1, 2, 15, 16, 17, 63, 64, 65, 150})
      for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {n / 2, n}, {0, n - 1}}) {
        SCOPED_TRACE(testing::Message() << s.blocks << " blocks of " << s.block << " length " << n
                                        << (lengths.empty() ? "" : " padded"));
        const Shape shape{2, 2, n, 5};
        const bridge::TwinCase c{"moba", params(s), {2, 2, n, n, 5, true}, lengths};
        bridge::expect_twin(c, [&](const Attention&, const Tensor& q) {
          const Choice choice =
              choice_of_blocks(array_of(q), array_of(bridge::normal(shape, "k")), s, lengths);
          EXPECT_GT(choice.margin, 2e-6);
          return [=](const std::vector<Array>& x) {
            return choices::attend(x[0], x[1], x[2], choice.seen);
          };
        });
      }
}

TEST(Moba, EqualsItsOracleWithManyQueriesOfABlock) {
  const Shape shape{1, 2, 1000, 16};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  for (const Setting& s : {Setting{64, 3}, {8, 100}, {1, 64}}) {
    const Choice choice = choice_of_blocks(array_of(q), array_of(k), s, {});
    const Array want = choices::attend(array_of(q), array_of(k), array_of(v), choice.seen);
    const auto attention = choices::build("moba", shape, true, params(s));
    for (const int threads : {1, 3}) {
      const ScopedThreads scoped(threads);
      EXPECT_TRUE(bridge::relative_error(choices::forward(*attention, q, k, v), want.x) <=
                  200 * kEpsilon);
    }
  }
}

TEST(Moba, OneBlockIsLocalAndAllBlocksAreFull) {
  const int64_t n = 100;
  const Shape shape{2, 2, n, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const auto expect = [&](const Setting& s, const oracle::Visibility& seen) {
    const Array want = oracle::softmax_attention(array_of(q), array_of(k), array_of(v), seen);
    const Tensor got = choices::forward(*choices::build("moba", shape, true, params(s)), q, k, v);
    EXPECT_TRUE(bridge::relative_error(got, want.x) <= 100 * kEpsilon) << s.block;
  };
  expect({8, 1},
         {true, {}, -1, [](int64_t, int64_t, int64_t i, int64_t j) { return i / 8 == j / 8; }});
  expect({8, 13}, {true});
  expect({100, 1}, {true});
  expect({128, 2}, {true});
}

// The mean of a block that is not whole, or of a later one, would show the future.
TEST(Moba, TheFutureMovesNothing) {
  for (const Setting& s : {Setting{16, 3}, {7, 2}}) {
    const auto attention = choices::build("moba", {1, 2, 120, 8}, true, params(s));
    choices::expect_future_is_unseen(*attention, 120, {1, 15, 16, 17, 50, 64, 119});
  }
}

TEST(Moba, OfEqualBlocksTheEarlierIsChosen) {
  const Shape shape{1, 2, 90, 4};
  const Tensor q = choices::coarse(shape, "q"), k = choices::coarse(shape, "k"),
               v = bridge::normal(shape, "v");
  const Setting s{8, 4};  // sums of eight small integers, divided by eight, are exact
  const Choice choice = choice_of_blocks(array_of(q), array_of(k), s, {});
  EXPECT_EQ(choice.margin, 0);
  const Array want = choices::attend(array_of(q), array_of(k), array_of(v), choice.seen);
  const auto attention = choices::build("moba", shape, true, params(s));
  EXPECT_TRUE(bridge::relative_error(choices::forward(*attention, q, k, v), want.x) <=
              100 * kEpsilon);
  const BFloat16Tensor rough = attention->forward(rounded(q), rounded(k), rounded(v), {true, {}});
  EXPECT_TRUE(bridge::relative_error(widened(rough), want.x) <= 1.0 / 128);
  choices::expect_decodes(*attention, q, k, v, 41);
}

TEST(Moba, DecodesWhatItAnswersInParallel) {
  for (const int64_t kv_heads : {1, 2, 4})
    for (const Setting& s : {Setting{16, 3}, {7, 4}, {200, 2}, {1, 5}}) {
      const Tensor q = bridge::normal({2, 4, 130, 8}, "q"),
                   k = bridge::normal({2, kv_heads, 130, 8}, "k"),
                   v = bridge::normal({2, kv_heads, 130, 8}, "v");
      const auto attention = choices::build("moba", q.shape(), true, params(s));
      for (const int64_t prefill : {0, 65, 129})
        choices::expect_decodes(*attention, q, k, v, prefill);
    }
}

}  // namespace
}  // namespace attn::topk_test
