// The cutting of rows into tiles: every row once, fair shares, moves to and from heads, and sums
// that workers make apart.
#include "core/simd/row_tiles.h"

#include <gtest/gtest.h>

#include <vector>

namespace attn::row_tiles_test {
namespace {

TEST(RowTiles, CoverEveryRowOnceInFairShares) {
  for (const int count : {1, 2, 3, 7}) {
    set_threads(count);
    for (const int64_t batch : {1, 2, 5})
      for (const int64_t len : {0, 1, 6, 47, 96, 191, 192, 193, 1000}) {
        SCOPED_TRACE(::testing::Message() << count << " threads, " << batch << " x " << len);
        const TilePlan plan = plan_tiles(batch, len, 192, 1e9);
        EXPECT_LE(plan.workers, count);
        EXPECT_LE(plan.height, 192);
        std::vector<int> seen(static_cast<size_t>(batch * len), 0);
        std::vector<int64_t> rows(static_cast<size_t>(plan.workers), 0);
        over_row_tiles(plan, [&](const RowTile& tile, int64_t worker) {
          ASSERT_EQ(tile.row, tile.entry * len + tile.first);
          ASSERT_LE(tile.first + tile.count, len);
          ASSERT_GT(tile.count, 0);
          ASSERT_LE(tile.count, plan.height);
          for (int64_t i = 0; i < tile.count; i++) seen[static_cast<size_t>(tile.row + i)]++;
          rows[static_cast<size_t>(worker)] += tile.count;
        });
        for (const int times : seen) ASSERT_EQ(times, 1);
        const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
        EXPECT_LE(*most - *least, plan.height + 6 * plan.workers);
      }
  }
  set_threads(1);
}

TEST(RowTiles, SmallWorkStaysOnOneThread) {
  set_threads(4);
  EXPECT_EQ(plan_tiles(1, 1000, 192, 1000).workers, 1);
  EXPECT_EQ(plan_tiles(1, 1000, 192, 1e9).workers, 4);
  EXPECT_EQ(plan_tiles(1, 100, 192, 1e9).workers, 2);
  set_threads(1);
}

TEST(RowTiles, GatherAndScatterAreInverse) {
  for (const int64_t heads : {2, 3})
    for (const int64_t dim : {1, 16, 17, 32, 64}) {
      const RowLayout rows = {2, 5, heads * dim, heads};
      const int64_t size = 2 * 5 * heads * dim;
      std::vector<real> data(static_cast<size_t>(size)), back(static_cast<size_t>(size), 1);
      for (int64_t i = 0; i < size; i++) data[static_cast<size_t>(i)] = static_cast<real>(i);
      const RowTile tile = {1, 2, 3, 7};
      std::vector<real> work(static_cast<size_t>(3 * heads * dim));
      gather_rows(rows, data.data(), tile, work.data());
      for (int64_t i = 0; i < 3; i++)
        for (int64_t h = 0; h < heads; h++)
          for (int64_t j = 0; j < dim; j++)
            ASSERT_EQ(work[static_cast<size_t>((i * heads + h) * dim + j)],
                      data[static_cast<size_t>(((heads + h) * 5 + 2 + i) * dim + j)]);
      for (const bool accumulate : {false, true})
        scatter_rows(rows, back.data(), tile, work.data(), accumulate);
      for (int64_t i = 0; i < size; i++) {
        const int64_t position = i / dim % 5, entry = i / dim / 5 / heads;
        const bool inside = entry == 1 && position >= 2;
        ASSERT_EQ(back[static_cast<size_t>(i)],
                  inside ? 2 * data[static_cast<size_t>(i)] : real(1));
      }
    }
}

TEST(RowTiles, WorkerSumsAddUpInOrder) {
  constexpr int64_t kSize = 70000;
  std::vector<real> total(kSize, 1);
  const WorkerSums sums(total.data(), kSize, 3);
  for (int64_t w = 0; w < 3; w++) {
    sums.clear(w);
    for (int64_t i = 0; i < kSize; i++) sums.of(w)[i] += static_cast<real>(w + 1);
  }
  sums.finish();
  for (const real value : total) ASSERT_EQ(value, real(7));
  const WorkerSums none(nullptr, kSize, 3);
  none.clear(1);
  none.finish();
  EXPECT_EQ(none.of(1), nullptr);
}

}  // namespace
}  // namespace attn::row_tiles_test
