// The positions at which outputs are compared.
#include "harness/verify/chosen_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace attn {
namespace {

TEST(ChosenRows, ATileHasOneRowOfItsOwnAndTheLastIsAmongThem) {
  for (const int64_t length : {1, 63, 64, 65, 128, 1024, 1030})
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const std::vector<int64_t> rows = a_row_of_each_tile(length, Rng(seed));
      const int64_t tiles = length / 64;
      ASSERT_GE(std::ssize(rows), tiles);
      for (int64_t tile = 0; tile < tiles; ++tile)
        ASSERT_EQ(rows[static_cast<size_t>(tile)] / 64, tile) << length << " " << seed;
      ASSERT_EQ(rows.back(), length - 1) << seed;
      ASSERT_TRUE(std::is_sorted(rows.begin(), rows.end()));
    }
}

TEST(ChosenRows, AreOfTheSequenceAscendingAndHoldTheEdgesOfTiles) {
  for (const int64_t length : {10, 64, 100, 1024, 4099})
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<int64_t> rows = chosen_rows(length, 48, Rng(seed));
      ASSERT_EQ(std::ssize(rows), std::min<int64_t>(length, 48));
      ASSERT_TRUE(std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) ==
                  rows.end());
      ASSERT_EQ(rows.front(), 0);
      ASSERT_EQ(rows.back(), length - 1);
      const int64_t edge = (length - 1) / 32 * 32;
      ASSERT_TRUE(edge == 0 || std::binary_search(rows.begin(), rows.end(), edge)) << length;
    }
}

}  // namespace
}  // namespace attn
