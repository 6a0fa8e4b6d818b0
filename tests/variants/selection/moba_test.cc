// moba against lists that a search over plain means finds, its limits, and that neither later keys
// nor ties decide what is seen.
#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "tests/variants/selection/choices.h"

namespace attn::moba_test {
namespace {

using bridge::array_of;
using choices::Array;
using choices::Choice;

struct Setting {
  int64_t block, blocks;
};

std::map<std::string, ParamValue> params(const Setting& s) {
  return {{"block", s.block}, {"blocks", s.blocks}};
}

// The keys that each query sees.
Choice choice_of(const Array& q, const Array& k, const Setting& s,
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
              choice_of(array_of(q), array_of(bridge::normal(shape, "k")), s, lengths);
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
    const Choice choice = choice_of(array_of(q), array_of(k), s, {});
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
  const Choice choice = choice_of(array_of(q), array_of(k), s, {});
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
}  // namespace attn::moba_test
