// The tiles of the softmax forward by the size of the second-level cache.
#include "variants/softmax/forward_layout.h"

#include <gtest/gtest.h>

namespace attn::forward_layout_test {
namespace {

int64_t most(int64_t dim, int64_t value_dim, int64_t cache_kib) {
  return ForwardDivision::most_rows({.dim = dim, .value_dim = value_dim}, cache_kib << 10);
}

TEST(ForwardLayout, QueriesAndOutputsOfATileTakeHalfTheCache) {
  const int64_t size = sizeof(real);
  EXPECT_EQ(most(64, 64, 256) * 128 * size, 128 << 10);
  EXPECT_EQ(most(64, 192, 1024) * 256 * size, 512 << 10);
  EXPECT_EQ(most(1, 1, 2048), 1024);      // the most of all
  EXPECT_EQ(most(1024, 1024, 256), 128);  // the least
  EXPECT_EQ(most(0, 0, 512), 1024);
}

TEST(ForwardLayout, ANarrowWindowHasRoomForTwelveRowsOfLogits) {
  const SoftmaxProblem wide{
      .batch = 1, .heads = 1, .q_len = 4096, .kv_len = 4096, .dim = 64, .value_dim = 64};
  SoftmaxProblem narrow = wide;
  narrow.left = narrow.right = 64;
  const auto logits = [](const SoftmaxProblem& p) {
    const ForwardLayout layout(p, ForwardDivision(p).tiles);
    return layout.total - layout.scores;
  };
  EXPECT_EQ(logits(wide), kForwardWideStrip * kForwardPiece);
  EXPECT_EQ(logits(narrow), 12 * kNarrowPiece);
}

}  // namespace
}  // namespace attn::forward_layout_test
