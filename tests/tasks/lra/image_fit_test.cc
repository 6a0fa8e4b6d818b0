// image against a solver that reads pixels alone: it draws each shape by the datasheet's words,
// fits place, size, turn and thickness to the picture, and names the shape that explains most of
// it. 10 to 30 ms a picture.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "tasks/catalog.h"

namespace attn::image_fit_test {
namespace {

enum Shape { disc, ring, half, square, frame, triangle, bar, plus, ell, dots };

bool box(double u, double v, double left, double right, double low, double high) {
  return u >= left && u <= right && v >= low && v <= high;
}

bool within(double u, double v, double radius) { return u * u + v * v <= radius * radius; }

// Is (u, v) in the shape of radius 1 with strokes t thick?
bool member(int shape, double u, double v, double t) {
  switch (shape) {
    case disc:
      return within(u, v, 1);
    case ring:
      return within(u, v, 1) && !within(u, v, 1 - t);
    case half:
      return v >= -0.42 && within(u, v + 0.42, 1);
    case square:
      return box(u, v, -0.75, 0.75, -0.75, 0.75);
    case frame:
      return box(u, v, -0.75, 0.75, -0.75, 0.75) &&
             !box(u, v, t - 0.75, 0.75 - t, t - 0.75, 0.75 - t);
    case triangle:  // its sides lie half a radius from the centre
      return v >= -0.5 && std::sqrt(3.0) / 2 * u + v / 2 <= 0.5 &&
             -std::sqrt(3.0) / 2 * u + v / 2 <= 0.5;
    case bar:
      return box(u, v, -1, 1, -t / 2, t / 2);
    case plus:
      return box(u, v, -1, 1, -t / 2, t / 2) || box(u, v, -t / 2, t / 2, -1, 1);
    case ell:
      return box(u, v, -0.7, 0.85, -0.7, t - 0.7) || box(u, v, -0.7, t - 0.7, -0.7, 0.85);
    default:
      return within(u - 0.62, v, 0.38) || within(u + 0.62, v, 0.38);
  }
}

// The turn after which a shape looks the same, in degrees, and whether it has strokes.
constexpr double kTurn[] = {0, 0, 360, 90, 90, 120, 180, 90, 360, 180};
bool has_strokes(int shape) {
  return shape == ring || shape == frame || (shape >= bar && shape <= ell);
}

struct Middle {
  double u = 0, v = 0, spread = 0;  // centre of mass, mean squared distance from it
};

template <class Weight>
Middle middle(int cells, double low, double step, const Weight& weight) {
  double n = 0, u = 0, v = 0, square = 0;
  for (int i = 0; i < cells * cells; i++) {
    const double x = low + step * (i % cells + 0.5), y = low + step * (i / cells + 0.5);
    const double w = weight(i, x, y);
    n += w, u += w * x, v += w * y, square += w * (x * x + y * y);
  }
  u /= n, v /= n;
  return {u, v, square / n - u * u - v * v};
}

using Pose = std::array<double, 5>;  // x, y, radius, turn (radians), thickness

class Picture {
 public:
  Picture(const std::vector<float>& values, int side) : values_(values), side_(side) {
    for (const float v : values) mean_ += v / static_cast<double>(values.size());
  }

  int shape() const {
    std::vector<std::pair<double, int>> ranked;
    std::array<Pose, 10> poses;
    for (int shape = 0; shape < 10; shape++) {
      poses[static_cast<size_t>(shape)] = first_guess(shape);
      ranked.emplace_back(-explained(shape, poses[static_cast<size_t>(shape)]), shape);
    }
    std::sort(ranked.begin(), ranked.end());
    int best = 0;
    double most = -1;
    for (const auto& [score, shape] : ranked) {
      if (-score < 0.75 * -ranked[0].first) continue;
      const double found = refined(shape, poses[static_cast<size_t>(shape)]);
      if (found > most) most = found, best = shape;
    }
    return best;
  }

 private:
  // The part of the picture's variance that the shape's coverage explains.
  double explained(int shape, const Pose& p) const {
    const double cosine = std::cos(p[3]), sine = std::sin(p[3]);
    double c = 0, cc = 0, cx = 0;
    for (int i = 0; i < side_ * side_; i++) {
      if (!within(i % side_ + 0.5 - p[0], i / side_ + 0.5 - p[1], 1.12 * p[2] + 1)) continue;
      double inside = 0;
      for (const double dx : {0.25, 0.75})
        for (const double dy : {0.25, 0.75}) {
          const double x = (i % side_ + dx - p[0]) / p[2], y = (i / side_ + dy - p[1]) / p[2];
          inside += member(shape, cosine * x + sine * y, cosine * y - sine * x, p[4]) / 4.0;
        }
      c += inside;
      cc += inside * inside;
      cx += inside * (static_cast<double>(values_[static_cast<size_t>(i)]) - mean_);
    }
    const double variance = cc - c * c / (side_ * side_);
    return cx > 0 && variance > 0 ? cx * cx / variance : 0;
  }

  // Means of three by three pixels, thresholded halfway.
  Middle bright() const {
    std::vector<double> smooth;
    for (int i = 0; i < side_ * side_; i++) {
      double sum = 0;
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
          const int x = std::clamp(i % side_ + dx, 0, side_ - 1),
                    y = std::clamp(i / side_ + dy, 0, side_ - 1);
          sum += static_cast<double>(values_[static_cast<size_t>(y * side_ + x)]) / 9;
        }
      smooth.push_back(sum);
    }
    std::vector<double> sorted = smooth;
    std::sort(sorted.begin(), sorted.end());
    const double threshold = (sorted[sorted.size() / 5] + sorted[sorted.size() * 98 / 100]) / 2;
    return middle(side_, 0, 1, [&](int i, double, double) {
      return smooth[static_cast<size_t>(i)] > threshold;
    });
  }

  // The best turn and thickness of a few, at the place and size that the bright pixels have.
  Pose first_guess(int shape) const {
    const Middle seen = bright();
    Pose best{};
    double most = -1;
    for (const double t : {0.28, 0.35, 0.42}) {
      if (t != 0.35 && !has_strokes(shape)) continue;
      const Middle own =
          middle(60, -1.2, 0.04, [&](int, double u, double v) { return member(shape, u, v, t); });
      const double radius = std::sqrt(seen.spread / own.spread);
      for (double degrees = 0; degrees < std::max(kTurn[shape], 1.0); degrees += 15) {
        const double turn = degrees * M_PI / 180;
        const double x = radius * (std::cos(turn) * own.u - std::sin(turn) * own.v),
                     y = radius * (std::sin(turn) * own.u + std::cos(turn) * own.v);
        const Pose pose = {seen.u - x, seen.v - y, radius, turn, t};
        const double score = explained(shape, pose);
        if (score > most) most = score, best = pose;
      }
    }
    return best;
  }

  // Steps in one number of the pose at a time, halved when none helps.
  double refined(int shape, Pose pose) const {
    Pose step = {1, 1, 0.08 * pose[2], 0.12, 0.04};
    double most = explained(shape, pose);
    for (int round = 0; round < 12; round++) {
      const double before = most;
      for (size_t k = 0; k < pose.size(); k++)
        for (const double sign : {-1.0, 1.0}) {
          Pose tried = pose;
          tried[k] += sign * step[k];
          tried[4] = std::clamp(tried[4], 0.28, 0.42);
          const double score = explained(shape, tried);
          if (score > most) most = score, pose = tried;
        }
      if (most > before) continue;
      for (double& s : step) s /= 2;
    }
    return most;
  }

  const std::vector<float>& values_;
  int side_;
  double mean_ = 0;
};

int errors(int side, int64_t count) {
  const auto task = find_task("image").build({{"side", int64_t{side}}});  // default noise
  std::vector<int> wrong(static_cast<size_t>(count));
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const Example e = task->example(3, Split::test, i);
      wrong[static_cast<size_t>(i)] = Picture(e.values, side).shape() != e.target[0];
    }
  });
  return static_cast<int>(std::count(wrong.begin(), wrong.end(), 1));
}

// 120 pictures in every run, 500 with ATTN_GOLDEN_ALL=1.
int64_t pictures() {
  const char* const all = std::getenv("ATTN_GOLDEN_ALL");
  return all && std::string_view(all) == "1" ? 500 : 120;
}

TEST(ImageFit, NamesEveryShapeAtTheDefaultSize) { EXPECT_EQ(errors(32, pictures()), 0); }

TEST(ImageFit, NamesEveryShapeAtSideSixteen) { EXPECT_EQ(errors(16, pictures()), 0); }

}  // namespace
}  // namespace attn::image_fit_test
