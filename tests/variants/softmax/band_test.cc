// The division of queries into tiles: all queries once, in tiles of nearly the same size.
#include "variants/softmax/band.h"

#include <gtest/gtest.h>

namespace attn::band_test {
namespace {

int64_t size(Span span) { return span.end - span.begin; }

TEST(QueryTiles, CoverEachQueryOnceInTilesThatDifferByAStrip) {
  for (const int64_t strip : {6, 12, 24})
    for (const int64_t most : {24, 96, 128, 1024})
      for (int64_t n = 1; n < 2100; n += n < 300 ? 1 : 97) {
        const QueryTiles tiles(n, nullptr, most, strip);
        int64_t next = 0, least = n, largest = 0;
        for (int64_t t = 0; t < tiles.count(); ++t) {
          const Span tile = tiles[t];
          ASSERT_EQ(tile.begin, next) << n << ", " << most << ", " << strip;
          ASSERT_EQ(tile.begin % strip, 0) << "tiles begin with a strip";
          ASSERT_GT(tile.end, tile.begin);
          next = tile.end;
          least = std::min(least, size(tile));
          largest = std::max(largest, size(tile));
        }
        ASSERT_EQ(next, n);
        ASSERT_LE(largest, std::min(tiles.rows, most + strip - 1));
        ASSERT_LT(largest - least, 2 * strip) << n << ", " << most << ", " << strip;
      }
}

TEST(QueryTiles, TwoThreadsShareALongHeadEvenly) {
  for (const int64_t n : {512, 640, 1000, 4096}) {
    const QueryTiles tiles(n, nullptr, 96, 24);
    ASSERT_EQ(tiles.count() % 2, 0);
    int64_t even = 0;
    for (int64_t t = 0; t < tiles.count(); t += 2) even += size(tiles[t]);
    EXPECT_LE(std::abs(2 * even - n), 2 * 24) << n;
  }
}

TEST(QueryTiles, StayInTheirBlock) {
  const BlockPattern pattern{.size = 50, .begin = {}, .keys = {}};
  const QueryTiles tiles(130, &pattern, 24, 6);  // blocks [0, 50), [50, 100), [100, 130)
  int64_t next = 0;
  for (int64_t t = 0; t < tiles.count(); ++t) {
    const Span tile = tiles[t];
    if (size(tile) == 0) continue;  // of the last block, which is short
    EXPECT_EQ(tile.begin, next);
    EXPECT_EQ(tile.begin / 50, (tile.end - 1) / 50);
    next = tile.end;
  }
  EXPECT_EQ(next, 130);
}

}  // namespace
}  // namespace attn::band_test
