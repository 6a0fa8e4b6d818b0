// Headings against the standard library's functions, which they may not use themselves.
#include "tasks/lra/snakes/heading.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attn::snakes::heading_test {
namespace {

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

}  // namespace
}  // namespace attn::snakes::heading_test
