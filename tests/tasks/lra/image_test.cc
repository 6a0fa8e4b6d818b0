// image against a reader that never draws: it names the shape from areas, moments and connected
// parts of the bright pixels, at a size where these are sharp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tasks/shortcuts/fitted.h"
#include "tests/tasks/score_of.h"

namespace attn::image_test {
namespace {

std::unique_ptr<Task> make(int64_t side, double noise) {
  return find_task("image").build({{"side", side}, {"noise", noise}});
}

// Four-connected parts of the pixels where `bright` is `value`.
int parts(std::vector<bool> bright, bool value, int side) {
  int count = 0;
  for (int start = 0; start < side * side; start++) {
    if (bright[static_cast<size_t>(start)] != value) continue;
    count++;
    std::vector<int> stack = {start};
    while (!stack.empty()) {
      const int p = stack.back();
      stack.pop_back();
      if (bright[static_cast<size_t>(p)] != value) continue;
      bright[static_cast<size_t>(p)] = !value;
      const int x = p % side, y = p / side;
      if (x > 0) stack.push_back(p - 1);
      if (x + 1 < side) stack.push_back(p + 1);
      if (y > 0) stack.push_back(p - side);
      if (y + 1 < side) stack.push_back(p + side);
    }
  }
  return count;
}

struct Features {
  double reach = 0;    // of the farthest bright pixel from the centroid
  double fill = 0;     // bright area over that of the disc of this reach
  double core = 0;     // the same, of the disc half as wide
  double stretch = 0;  // long over short principal moment
};

Features measure(const std::vector<bool>& bright, int side) {
  double area = 0, mx = 0, my = 0, xx = 0, xy = 0, yy = 0, inner = 0;
  const auto each = [&](const auto& body) {
    for (int p = 0; p < side * side; p++)
      if (bright[static_cast<size_t>(p)]) body(p % side + 0.5, p / side + 0.5);
  };
  each([&](double x, double y) { area++, mx += x, my += y; });
  mx /= area;
  my /= area;
  Features f;
  each([&](double x, double y) {
    f.reach = std::max(f.reach, std::hypot(x - mx, y - my));
    xx += (x - mx) * (x - mx);
    xy += (x - mx) * (y - my);
    yy += (y - my) * (y - my);
  });
  each([&](double x, double y) { inner += std::hypot(x - mx, y - my) < f.reach / 2; });
  const double disc = M_PI * f.reach * f.reach, spread = std::hypot(xx - yy, 2 * xy);
  f.fill = area / disc;
  f.core = inner / (disc / 4);
  f.stretch = (xx + yy + spread) / (xx + yy - spread);
  return f;
}

int name_shape(const std::vector<float>& values, int side) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  std::vector<bool> bright;
  for (const float v : values) bright.push_back(v > (*low + *high) / 2);
  const Features f = measure(bright, side);
  if (parts(bright, true, side) == 2) return 9;  // dots
  const bool hole = parts(bright, false, side) == 2;
  if (hole) {  // filled up, a ring is a disc: area π·reach², and a frame is a square: 2·reach²
    std::vector<bool> outside = bright;
    std::vector<int> stack = {0};
    while (!stack.empty()) {
      const int p = stack.back();
      stack.pop_back();
      if (outside[static_cast<size_t>(p)]) continue;
      outside[static_cast<size_t>(p)] = true;
      if (p % side > 0) stack.push_back(p - 1);
      if (p % side + 1 < side) stack.push_back(p + 1);
      if (p >= side) stack.push_back(p - side);
      if (p + side < side * side) stack.push_back(p + side);
    }
    for (size_t p = 0; p < outside.size(); p++) bright[p] = bright[p] || !outside[p];
    return measure(bright, side).fill > 0.8 ? 1 : 4;
  }
  if (f.stretch > 8) return 6;                        // bar: (2/thickness)²
  if (f.stretch > 1.8) return f.fill > 0.34 ? 2 : 8;  // half disc, ell
  if (f.fill > 0.8) return 0;                         // disc: 1
  if (f.fill > 0.54) return 3;                        // square: 2/π
  return f.core > 0.92 ? 5 : 7;  // the disc of half the reach fits a triangle, not a plus
}

TEST(Image, AReaderOfMomentsAndPartsNamesTheShapes) {
  constexpr int kSide = 64, kCount = 600;
  const auto task = make(kSide, 0);
  int right = 0;
  std::vector<int> by_class(10), right_by_class(10);
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(3, Split::test, i);
    const auto label = static_cast<size_t>(e.target.at(0));
    const bool same = name_shape(e.values, kSide) == e.target[0];
    by_class[label]++;
    right_by_class[label] += same;
    right += same;
  }
  EXPECT_GE(right, kCount * 98 / 100) << right;
  for (size_t label = 0; label < 10; label++)
    EXPECT_GE(right_by_class[label], by_class[label] * 9 / 10) << label;
}

TEST(Image, EvidenceIsWhatDiffersFromTheBackground) {
  const auto task = make(20, 0);
  for (int64_t i = 0; i < 100; i++) {
    const Example e = task->example(1, Split::train, i);
    const float background = *std::min_element(e.values.begin(), e.values.end());
    std::vector<int32_t> different;
    for (size_t p = 0; p < e.values.size(); p++)
      if (e.values[p] > background) different.push_back(static_cast<int32_t>(p));
    ASSERT_EQ(e.evidence, different);
    ASSERT_GE(e.slices.at("radius"), 0.26);
    ASSERT_LE(e.slices.at("radius"), 0.40);
  }
}

// The same draw with and without noise shows the same picture, so that their difference is noise.
TEST(Image, NoiseHasTheDeclaredDeviation) {
  const auto clean = make(24, 0), noisy = make(24, 0.02);
  double sum = 0, squares = 0, count = 0, one_grey_level = 1;
  for (int64_t i = 0; i < 50; i++) {
    const Example a = clean->any_example(2, Split::train, i),
                  b = noisy->any_example(2, Split::train, i);
    ASSERT_EQ(a.target, b.target);
    ASSERT_EQ(a.evidence, b.evidence);
    for (size_t p = 0; p < a.values.size(); p++) {
      const double difference = b.values[p] - a.values[p];
      if (std::abs(difference) > 1e-4)
        one_grey_level = std::min(one_grey_level, std::abs(difference));
      sum += difference;
      squares += difference * difference;
      count++;
    }
  }
  const double unit = 255 * one_grey_level;  // black to white, in input units
  EXPECT_NEAR(sum / count / unit, 0, 0.001);
  EXPECT_NEAR(std::sqrt(squares / count) / unit, 0.02, 0.001);
}

TEST(Image, InputsAreStandardised) {
  const auto task = make(32, 0.05);
  double sum = 0, squares = 0, count = 0;
  for (int64_t i = 0; i < 300; i++)
    for (const float v : task->example(6, Split::train, i).values)
      sum += v, squares += v * v, count++;
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(squares / count, 1, 0.1);
}

TEST(Image, ClassesAreBalancedAndFlatPicturesNamed) {
  const auto task = make(8, 0.05);
  EXPECT_EQ(task->shape().length, 64);
  EXPECT_FALSE(task->shape().causal);
  std::vector<double> seen(10);
  constexpr int kCount = 5000;
  for (int64_t i = 0; i < kCount; i++)
    seen[static_cast<size_t>(task->example(1, Split::train, i).target[0])]++;
  for (const double count : seen) EXPECT_NEAR(count, kCount / 10, 5 * std::sqrt(kCount / 10));
}

TEST(Image, ALinearClassifierIsAWeakShortcut) {
  const std::vector<Shortcut> shortcuts = make(16, 0.05)->shortcuts(1, 1500, 1000);
  EXPECT_NEAR(score_of(shortcuts, "majority"), 0.1, 0.05);
  EXPECT_GT(score_of(shortcuts, "linear pixels"), 0.2);
  EXPECT_LT(score_of(shortcuts, "linear pixels"), 0.45);
}

// A linear score of 100 × 100 pixels would take a matrix of 800 MB.
TEST(Image, LargePicturesAreReducedForTheLinearShortcut) {
  const auto task = make(100, 0.05);
  const Example e = task->example(1, Split::test, 0);
  const Example small = reduced_pictures(*task, {e}, 32).at(0);
  ASSERT_EQ(small.values.size(), 25u * 25u);
  const std::vector<uint8_t> grey = task->picture(e);
  double square = 0;  // the third of the second row
  for (size_t y = 4; y < 8; y++)
    for (size_t x = 8; x < 12; x++) square += grey[y * 100 + x] / 255.0;
  EXPECT_NEAR(small.values[25 + 2], square, 1e-5);
  EXPECT_EQ(small.target, e.target);
  EXPECT_EQ(reduced_pictures(*task, {e}, 30).at(0).values.size(), 25u * 25u);
  EXPECT_EQ(reduced_pictures(*task, {e}, 40).at(0).values.size(), 34u * 34u);
  EXPECT_GE(score_of(task->shortcuts(1, 20, 20), "linear pixels"), 0);
}

TEST(Image, ParametersOutOfRangeAreErrors) {
  EXPECT_THROW(make(7, 0.05), Error);
  EXPECT_THROW(make(16, -0.1), Error);
}

}  // namespace
}  // namespace attn::image_test
