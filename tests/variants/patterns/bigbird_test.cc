// Patterns that skip: bigbird and dilated.
#include <gtest/gtest.h>

#include <set>

#include "tests/variants/pattern_check.h"

namespace attn::bigbird_test {
namespace {

// bigbird: what its blocks see, read off its weights, against the paper's description; then the
// numbers against the oracle with that pattern, and decoding.

using bridge::Given;

Given given(int64_t block, int64_t window, int64_t global, int64_t random) {
  return {{"block", block},
          {"window_blocks", window},
          {"global_blocks", global},
          {"random_blocks", random}};
}

// seen[b][h][query block]: blocks of keys, read off the weights; each seen key weighs the same.
std::set<int64_t> seen_blocks(const Tensor& weights, int64_t head, int64_t row, int64_t size) {
  const int64_t n = weights.dim(3);
  const real* const w = weights.data() + (head * n + row) * n;
  std::set<int64_t> seen;
  double count = 0;
  for (int64_t j = 0; j < n; ++j) count += w[j] > 0;
  for (int64_t j = 0; j < n; ++j) {
    if (!(w[j] > 0)) continue;
    seen.insert(j / size);
    EXPECT_NEAR(static_cast<double>(w[j]), 1 / count, 1e-6) << row << " sees " << j;
  }
  return seen;
}

TEST(BigBird, SeesNeighboursEndsAndRandomBlocks) {
  constexpr int64_t kSize = 4, kBlocks = 14, n = kSize * kBlocks - 1;
  std::set<std::set<int64_t>> different;
  for (const bool causal : {false, true}) {
    const auto attention = bridge::build("bigbird", given(kSize, 3, 2, 2), n, causal);
    const Tensor weights = bridge::even_weights(*attention, n, {causal, {}});
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t b = 0; b < kBlocks; ++b) {
        const int64_t last = std::min(n, (b + 1) * kSize) - 1, ahead = causal ? b : kBlocks - 1;
        std::set<int64_t> seen = seen_blocks(weights, head, last, kSize);
        different.insert(seen);
        SCOPED_TRACE(testing::Message() << "block " << b << " of head " << head);
        if (b == 0 || (b == kBlocks - 1 && !causal)) {
          EXPECT_EQ(std::ssize(seen), ahead + 1);
          continue;
        }
        std::set<int64_t> named = {0, b - 1, b};
        if (!causal) named.insert({b + 1, kBlocks - 1});
        for (const int64_t key : named) EXPECT_EQ(seen.erase(key), 1u) << key;
        EXPECT_EQ(std::ssize(seen), std::min<int64_t>(2, ahead + 1 - std::ssize(named)));
        for (const int64_t key : seen) EXPECT_LE(key, ahead);
      }
  }
  EXPECT_GT(different.size(), 30u) << "random blocks differ from block to block and head to head";
}

// Long Range Arena's code, at any length above.
TEST(BigBird, AsLraDrawsFromTheFirst1024Positions) {
  if (kIsDouble) GTEST_SKIP() << "what is drawn is the same in float";
  constexpr int64_t kSize = 128, kBlocks = 12, n = kSize * kBlocks;
  constexpr int64_t kDim = 128;  // few forwards read off all weights
  Given params = given(kSize, 1, 0, 3);
  for (const std::string& as : {std::string("paper"), std::string("lra")}) {
    params["as"] = as;
    const Tensor weights = bridge::even_weights(
        *bridge::build("bigbird", params, n, false, 3, kDim), n, {false, {}}, kDim);
    std::set<int64_t> late;
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t b = 0; b < kBlocks; ++b) {
        const std::set<int64_t> seen = seen_blocks(weights, head, b * kSize, kSize);
        EXPECT_EQ(seen.size(), 4u) << "its own and three";
        for (const int64_t key : seen)
          if (key != b && key >= 1024 / kSize) late.insert(key);
      }
    EXPECT_EQ(late.empty(), as == "lra");
  }
}

TEST(BigBird, SeedsDraw) {
  const auto weights = [](uint64_t seed) {
    const auto attention = bridge::build("bigbird", given(4, 1, 0, 2), 40, false, seed);
    return bridge::even_weights(*attention, 40, {false, {}});
  };
  EXPECT_TRUE(bridge::same_bits(weights(1), weights(1)));
  EXPECT_FALSE(bridge::same_bits(weights(1), weights(2)));
}

void expect_its_pattern(const Given& params, int64_t n, const Mask& mask) {
  const Tensor weights =
      bridge::even_weights(*bridge::build("bigbird", params, n, mask.causal), n, mask);
  bridge::expect_pattern("bigbird", params, n, mask,
                         [&](int64_t b, int64_t h, int64_t i, int64_t j) {
                           return weights[((b * 2 + h) * n + i) * n + j] > 0;
                         });
}

TEST(BigBird, EqualsTheOracleOnItsPattern) {
  for (const Given& params :
       {given(4, 3, 2, 3), given(5, 1, 0, 1), given(7, 2, 3, 2), given(16, 3, 2, 0)})
    for (const int64_t n : {1, 37, 64})
      for (const bool causal : {false, true}) {
        expect_its_pattern(params, n, {causal, {}});
        expect_its_pattern(params, n, {causal, {n / 2, n - n / 8}});
      }
  for (const bool causal : {false, true})  // whole panels of keys, which are packed ahead
    expect_its_pattern(given(64, 3, 2, 2), 460, {causal, {460, 300}});
}

// A random block that repeats a neighbour or an end, or a window that reaches into an end, must not
// make keys count twice: the weights of equal logits are equal, at every number of blocks.
TEST(BigBird, RegressionNoBlockCountsTwice) {
  for (int64_t n = 4; n <= 36; n += 4) {
    const auto attention = bridge::build("bigbird", given(4, 3, 2, 3), n, false);
    const Tensor weights = bridge::even_weights(*attention, n, {false, {}});
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t i = 0; i < n; ++i) seen_blocks(weights, head, i, 4);
  }
}

// The last block is that of the valid keys: padding does not move it.
TEST(BigBird, PaddingDoesNotMoveTheLastBlock) {
  const auto attention = bridge::build("bigbird", given(4, 1, 2, 1), 40, false);
  const Tensor padded = bridge::even_weights(*attention, 40, {false, {21, 21}}),
               alone = bridge::even_weights(*attention, 21, {false, {}});
  for (int64_t at = 0; at < alone.size(); ++at)
    ASSERT_NEAR(static_cast<double>(alone[at]),
                static_cast<double>(padded[(at / 441 * 40 + at / 21 % 21) * 40 + at % 21]), 1e-6);
}

TEST(BigBird, Decodes) {
  for (const int64_t n : {3, 12, 40}) {
    bridge::expect_decoding("bigbird", given(4, 3, 2, 2), n);
    bridge::expect_decoding("bigbird", given(5, 1, 0, 0), n);
  }
}

// dilated against an oracle of its own: lists of keys written out, one softmax over the multiset.

struct Lists {
  int64_t segment, levels, ratio, heads;

  // The keys of query i on all lists; some more than once.
  std::vector<int64_t> of(int64_t h, int64_t i, int64_t n) const {
    std::vector<int64_t> keys;
    int64_t step = 1, length = segment;
    for (int64_t l = 0; l < levels; ++l, step *= ratio, length *= ratio) {
      const int64_t sharing = heads % step == 0 ? heads / step : heads / step + 1;
      for (int64_t first = 0; first < n; first += length) {
        std::vector<int64_t> members;
        for (int64_t j = first + h / sharing; j < std::min(first + length, n); j += step)
          members.push_back(j);
        if (std::find(members.begin(), members.end(), i) != members.end())
          keys.insert(keys.end(), members.begin(), members.end());
      }
    }
    return keys;
  }
};

oracle::Array softmax_over(const Lists& lists, const std::vector<oracle::Array>& x,
                           const Mask& mask) {
  const oracle::Array &q = x[0], &k = x[1], &v = x[2];
  oracle::Array out(q.batch, q.heads, q.len, q.dim);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        double total = 0;
        std::vector<double> sum(static_cast<size_t>(q.dim));
        for (const int64_t j : lists.of(h, i, q.len)) {
          if (mask.causal && j > i) continue;
          if (!mask.kv_lengths.empty() && j >= mask.kv_lengths[static_cast<size_t>(b)]) continue;
          double logit = 0;
          for (int64_t c = 0; c < q.dim; ++c) logit += q.at(b, h, i, c) * k.at(b, h, j, c);
          const double weight = std::exp(logit / std::sqrt(static_cast<double>(q.dim)));
          total += weight;
          for (int64_t c = 0; c < q.dim; ++c)
            sum[static_cast<size_t>(c)] += weight * v.at(b, h, j, c);
        }
        for (int64_t c = 0; c < q.dim; ++c)
          out.at(b, h, i, c) = total > 0 ? sum[static_cast<size_t>(c)] / total : 0;
      }
  return out;
}

void expect_lists(const Lists& lists, int64_t n, const Mask& mask, int64_t dim = 5) {
  SCOPED_TRACE(testing::Message() << n << " segment " << lists.segment << " levels " << lists.levels
                                  << " ratio " << lists.ratio << " heads " << lists.heads
                                  << (mask.causal ? " causal" : ""));
  const Given given = {
      {"segment", lists.segment}, {"levels", lists.levels}, {"ratio", lists.ratio}};
  const Shape shape{2, lists.heads, n, dim};
  const std::vector<Tensor> inputs = {bridge::normal(shape, "q"), bridge::normal(shape, "k"),
                                      bridge::normal(shape, "v")};
  for (const size_t which : {1u, 2u})
    bridge::fill_padding(inputs[which], mask.kv_lengths, bridge::kNaN);
  const Var q(inputs[0], true), k(inputs[1], true), v(inputs[2], true);
  const auto attention =
      find_variant("dilated").build({lists.heads, dim, n, mask.causal, 3, {}}, given);
  const Var out = attention->forward(q, k, v, mask);
  const bridge::Twin twin = [&](const std::vector<oracle::Array>& x) {
    return softmax_over(lists, x, mask);
  };
  const oracle::Array want =
      twin({bridge::array_of(inputs[0]), bridge::array_of(inputs[1]), bridge::array_of(inputs[2])});
  EXPECT_LE(bridge::relative_error(out.value(), want.x), 40 * kEpsilon);
  const Tensor seed = bridge::normal(shape, "seed");
  out.backward(seed);
  bridge::expect_gradients(inputs, {q.grad(), k.grad(), v.grad()}, seed, twin);
}

TEST(Dilated, IsOneSoftmaxOverTheKeysOfAllLists) {
  for (const int64_t n : {1, 7, 8, 9, 37})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true}) {
        Mask mask{causal, {}};
        if (padded) mask.kv_lengths = {n / 2, n - n / 8};
        for (const int64_t heads : {1, 2, 3}) {
          expect_lists({4, 3, 2, heads}, n, mask);
          expect_lists({3, 2, 3, heads}, n, mask);
        }
      }
  expect_lists({8, 1, 2, 2}, 37, {});
}

// Groups that are gathered some at a time.
TEST(Dilated, LongSegmentsInSeveralChunks) {
  for (const bool causal : {false, true})
    expect_lists({100, 3, 2, 2}, 375, {causal, {375, 170}}, 64);
}

TEST(Dilated, OneLevelIsBlockLocal) {
  for (const int64_t block : {1, 5, 16, 100})
    bridge::expect_pattern_everywhere("dilated", {{"segment", block}, {"levels", int64_t{1}}},
                                      bridge::everywhere(oracle::blocks(block, 0, 0)));
}

TEST(Dilated, OneSegmentWithoutGapsIsSoftmaxAttention) {
  bridge::expect_pattern_everywhere("dilated", {{"segment", int64_t{64}}, {"levels", int64_t{1}}},
                                    bridge::everywhere([](int64_t, int64_t) { return true; }));
}

// With equal logits the weight of a key is the share of the lists that hold it.
TEST(Dilated, AKeyOfTwoListsCountsTwice) {
  const auto attention = bridge::build(
      "dilated", {{"segment", int64_t{4}}, {"levels", int64_t{2}}, {"ratio", int64_t{2}}}, 16,
      false);
  const Tensor weights = bridge::even_weights(*attention, 16, {});
  const double own_and_far = 2.0 / 8, own = 1.0 / 8;  // 4 keys of the segment, 4 of the dilated one
  EXPECT_NEAR(static_cast<double>(weights[0 * 16 + 2]), own_and_far, 1e-6);
  EXPECT_NEAR(static_cast<double>(weights[0 * 16 + 1]), own, 1e-6);
  EXPECT_NEAR(static_cast<double>(weights[0 * 16 + 6]), own, 1e-6);
  EXPECT_NEAR(static_cast<double>(weights[0 * 16 + 5]), 0, 1e-6);
  EXPECT_NEAR(static_cast<double>(weights[1 * 16 + 2]), 0.25, 1e-6);  // not at head 0's offset
  EXPECT_NEAR(static_cast<double>(weights[(16 + 1) * 16 + 5]), own, 1e-6);  // head 1: odd positions
}

TEST(Dilated, Decodes) {
  for (const int64_t segment : {1, 3, 8})
    for (const int64_t n : {3, 12, 40}) {
      bridge::expect_decoding("dilated", {{"segment", segment}, {"levels", int64_t{3}}}, n);
      bridge::expect_decoding("dilated", {{"segment", segment}, {"levels", int64_t{1}}}, n);
    }
}

}  // namespace
}  // namespace attn::bigbird_test
