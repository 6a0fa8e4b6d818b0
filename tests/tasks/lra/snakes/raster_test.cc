// Strokes, dilation and the Lanczos filter against slow definitions.
#include "tasks/lra/snakes/raster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace attn::snakes::raster_test {
namespace {

std::map<std::pair<int, int>, int> pixels(const Stamp& stamp, Offset anchor, int side) {
  std::map<std::pair<int, int>, int> all;
  each_pixel(stamp, anchor, side, [&](int y, int x, uint8_t grey) { all[{y, x}] = grey; });
  return all;
}

double lanczos(double x) {
  const auto sinc = [](double t) { return t == 0 ? 1 : std::sin(M_PI * t) / (M_PI * t); };
  return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
}

// A disc of fine pixels, filtered by the formula in two dimensions.
TEST(Raster, HalvingIsTheLanczosFilter) {
  Fine fine(12);
  fine.disc(5);
  const auto found = pixels(fine.halved(), {6, 6}, 13);
  double norm = 0;
  for (int k = -5; k <= 5; k++) norm += lanczos(k / 2.0);
  for (int y = -6; y <= 6; y++)
    for (int x = -6; x <= 6; x++) {
      double sum = 0;
      for (int i = -5; i <= 5; i++)
        for (int j = -5; j <= 5; j++) {
          const int v = 2 * y + i, u = 2 * x + j;
          if (v * v + u * u <= 25) sum += lanczos(i / 2.0) * lanczos(j / 2.0) / norm / norm;
        }
      const double expected = 255 * std::clamp(sum, 0.0, 1.0);
      const auto at = found.find({y + 6, x + 6});
      ASSERT_NEAR(at == found.end() ? 0 : at->second, expected, 0.51) << y << ' ' << x;
    }
}

TEST(Raster, LinesJoinTheirEndsAtTheirWidth) {
  for (const int width : {1, 2, 3}) {
    Fine fine(20);
    fine.line({6, 12}, width);
    const Stamp stamp = fine.halved();
    const auto found = pixels(stamp, {10, 10}, 21);
    EXPECT_GT(found.at({10, 10}), 40);  // ends
    EXPECT_GT(found.at({13, 16}), 40);
    double sum = 0;
    for (const auto& [place, grey] : found) sum += grey;
    // Half as long and half as wide; a line one pixel wide has one on each step along x.
    const double area = width == 1 ? 13 / 4.0 : std::hypot(6, 12) * width / 4;
    EXPECT_NEAR(sum / 255, area, 0.35 * area) << width;
  }
}

TEST(Raster, DilationReachesTheRadius) {
  Fine fine(16), far(16);
  fine.line({0, 8}, 1);
  const auto found = pixels(fine.dilated(4).halved(), {8, 8}, 17);
  EXPECT_GT(found.at({8, 8}), 230);  // four fine pixels up, down and back
  EXPECT_EQ(found.at({9, 10}), 255);
  EXPECT_GT(found.at({10, 10}), 100);  // the rim: four fine pixels down
  const auto outside = found.find({12, 10});
  EXPECT_LT(outside == found.end() ? 0 : outside->second, 30);
}

TEST(Raster, CanvasesAddByMaximumAndSumWhereStampsMeet) {
  const Stamp a{0, 0, 2, 2, {10, 20, 30, 40}}, b{-1, -1, 2, 2, {1, 2, 3, 4}};
  Canvas canvas(4, 1);
  EXPECT_EQ(canvas.at({0, 2}), 255);
  EXPECT_EQ(canvas.at({1, 2}), 0);
  canvas.add(a, {1, 1});
  canvas.add(b, {2, 2});  // on the same pixels
  EXPECT_EQ(canvas.at({1, 1}), 10);
  EXPECT_EQ(canvas.at({2, 2}), 40);
  EXPECT_EQ(canvas.highest_sum(a, {2, 2}), 295);  // at the corner
  EXPECT_EQ(highest_sum(a, {1, 1}, b, {2, 2}), 44);
  EXPECT_EQ(highest_sum(a, {1, 1}, b, {3, 3}), 41);
  EXPECT_EQ(highest_sum(a, {1, 1}, b, {9, 9}), 0);
  EXPECT_EQ(canvas.highest_around({2, 2}, disc_offsets(0)), 40);
  EXPECT_EQ(canvas.highest_around({2, 2}, disc_offsets(1)), 255);
}

}  // namespace
}  // namespace attn::snakes::raster_test
