// What a scene is drawn with: headings, markers and the raster.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "tasks/lra/snakes/heading.h"
#include "tasks/lra/snakes/markers.h"
#include "tasks/lra/snakes/raster.h"
#include "tasks/lra/snakes/scene.h"

namespace attn::snakes::raster_test {
namespace {

// Headings against the standard library's functions, which they may not use themselves.

TEST(Heading, SinesAreThoseOfTheStandardLibrary) {
  for (int i = -800; i <= 800; i++) ASSERT_NEAR(sine(i / 100.0), std::sin(i / 100.0), 1e-12) << i;
  for (int d = -360; d <= 720; d++) {
    ASSERT_NEAR(degrees(d).y, std::sin(d * M_PI / 180), 1e-12) << d;
    ASSERT_NEAR(degrees(d).x, std::cos(d * M_PI / 180), 1e-12) << d;
  }
  EXPECT_EQ(degrees(30).y, 0.5);
  EXPECT_EQ(degrees(90).x, 0.0);
  EXPECT_EQ(degrees(180).y, 0.0);
}

TEST(Heading, AnglesAndWeightsAreThoseOfTheStandardLibrary) {
  for (int a = 0; a < 360; a += 7)
    for (int b = 0; b < 360; b += 5) {
      const double turn = std::abs(std::remainder((a - b) * M_PI / 180, 2 * M_PI));
      ASSERT_NEAR(angle(degrees(a), degrees(b)), turn, 1e-10) << a << ' ' << b;
      for (const double continuity : {1.0, 1.8}) {
        const double weight = std::pow(std::cos(std::min(continuity * turn, M_PI / 2)), 2);
        ASSERT_NEAR(turn_weight(degrees(a), degrees(b), continuity), weight, 1e-10);
      }
    }
}

TEST(Heading, MovingRoundsUpAndIgnoresNoise) {
  const Offset east = moved(degrees(0), 5), up = moved(degrees(-90), 5);
  EXPECT_TRUE(east.y == 0 && east.x == 5);
  EXPECT_TRUE(up.y == -5 && up.x == 0);
  const Offset slanted = moved({0.6, -0.8}, 5);
  EXPECT_TRUE(slanted.y == 3 && slanted.x == -4);
  const Offset between = moved({0.6, -0.8}, 2);  // 1.2 and -1.6
  EXPECT_TRUE(between.y == 2 && between.x == -1);
}

TEST(Heading, CirclePixelsLieOnTheCircleOnce) {
  for (const double radius : {2.5, 3.0, 6.0, 8.0}) {
    const auto pixels = circle_pixels(radius);
    EXPECT_GT(static_cast<double>(pixels.size()), 4.5 * radius);
    EXPECT_LE(static_cast<double>(pixels.size()), 2 * M_PI * radius + 1);
    for (size_t i = 0; i < pixels.size(); i++) {
      ASSERT_NEAR(std::hypot(pixels[i].y + 0.5, pixels[i].x + 0.5), radius, 0.71);
      for (size_t j = 0; j < i; j++)
        ASSERT_FALSE(pixels[i].y == pixels[j].y && pixels[i].x == pixels[j].x);
    }
  }
}

// The search for markers against the scenes that were drawn.

TEST(Markers, AreFoundInThePixels) {
  for (const int side : {16, 24, 32, 64}) {
    const Scenes scenes(settings_of(side, 6, -1));
    int found = 0;
    constexpr int kCount = 300;
    for (int i = 0; i < kCount; i++) {
      Rng random = rng(2, "markers", static_cast<uint64_t>(i));
      const Scene scene = scenes.draw(random);
      const auto places = find_markers(scene.grey, side, scenes.settings().marker_radius);
      const auto near = [](Offset a, Offset b) {
        return std::max(std::abs(a.y - b.y), std::abs(a.x - b.x)) <= 1;
      };
      const auto& m = scene.markers;
      found += (near(places[0], m[0]) && near(places[1], m[1])) ||
               (near(places[0], m[1]) && near(places[1], m[0]));
    }
    EXPECT_GE(found, kCount * 9 / 10) << side;
  }
}

// Strokes, dilation and the Lanczos filter against slow definitions.

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
