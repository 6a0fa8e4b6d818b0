// Scenes against a solver that sees paddles as strokes in no order, without their snakes: it joins
// heads to tails by the gap and the turn between them, then walks from marker to marker.
#include "tasks/lra/snakes/scene.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace attn::snakes::scene_test {
namespace {

struct Stroke {
  double tail_y, tail_x, head_y, head_x;
  auto operator<=>(const Stroke&) const = default;
  double length() const { return std::hypot(head_y - tail_y, head_x - tail_x); }
};

// Sorted by place: nothing of the order in which they were drawn is left.
std::vector<Stroke> strokes(const Scene& scene) {
  std::vector<Stroke> all;
  for (const Snake& snake : scene.snakes)
    for (const Paddle& p : snake) all.push_back({p.tail_y, p.tail_x, p.head_y, p.head_x});
  std::sort(all.begin(), all.end());
  return all;
}

// One way in which a stroke can have come about: where the growing snake stood, and its heading.
struct Origin {
  int pivot_y, pivot_x;
  double y, x;  // heading
  bool seed;
};

int up(double v) { return static_cast<int>(std::ceil(v - 1e-9)); }

// Every origin that leaves exactly this stroke, by the definition: a seed's tail lies on a pixel
// and its heading is a whole degree; an extension's head is a pixel of a circle around the pivot.
std::vector<Origin> origins(const Stroke& s, const Settings& settings, double margin) {
  std::vector<Origin> all;
  const double length = settings.length, radius = length + margin;
  const auto ends = [&](double from_y, double from_x, double to_y, double to_x, double y,
                        double x) {
    return to_y - from_y == up(2 * length * y) / 2.0 && to_x - from_x == up(2 * length * x) / 2.0;
  };
  for (int degree = 0; degree < 360; degree++) {
    const double y = std::sin(degree * M_PI / 180), x = std::cos(degree * M_PI / 180);
    if (s.tail_y != std::floor(s.tail_y) || s.tail_x != std::floor(s.tail_x)) continue;
    if (!ends(s.tail_y, s.tail_x, s.head_y, s.head_x, y, x)) continue;
    all.push_back({static_cast<int>(s.tail_y) + up(length * y) + up(-radius * y),
                   static_cast<int>(s.tail_x) + up(length * x) + up(-radius * x), y, x, true});
  }
  for (int step = 0; step < 2 * M_PI * radius; step++) {
    const double dy = std::floor(radius * std::sin(step / radius) + 1e-9);
    const double dx = std::floor(radius * std::cos(step / radius) + 1e-9);
    const double y = dy / std::hypot(dy, dx), x = dx / std::hypot(dy, dx);
    if (s.head_y != std::floor(s.head_y) || s.head_x != std::floor(s.head_x)) continue;
    if (!ends(s.head_y, s.head_x, s.tail_y, s.tail_x, -y, -x)) continue;
    all.push_back({static_cast<int>(s.head_y - dy), static_cast<int>(s.head_x - dx), y, x, false});
  }
  return all;
}

class Solver {
 public:
  Solver(const Scene& scene, const Settings& settings)
      : strokes_(strokes(scene)), settings_(settings), margin_(scene.margin) {
    for (const Stroke& s : strokes_) origins_.push_back(origins(s, settings, margin_));
    used_.resize(strokes_.size());
  }
  // Can the strokes be read with this label: one chain of `contour` strokes from a seed at the
  // first marker, another of as many beside it, and the second marker at the tip of the first chain
  // (label 1) or of the other (label 0)?
  bool reads(int label, const std::array<Offset, 2>& markers) {
    goal_ = markers[1];
    marked_ = label == 1 ? 1 : 2;
    for (size_t s = 0; s < strokes_.size(); s++)
      if (strokes_[s].tail_y == markers[0].y && strokes_[s].tail_x == markers[0].x && starts(s, 1))
        return true;
    return false;
  }

 private:
  bool starts(size_t at, int chain) {
    return std::any_of(origins_[at].begin(), origins_[at].end(), [&](const Origin& origin) {
      return origin.seed && walk(at, origin, 1, chain);
    });
  }

  // Can chain 1 or 2 be completed from here? Every stroke is in one chain at most.
  bool walk(size_t at, const Origin& origin, int paddles, int chain) {
    used_[at] = true;
    const bool found =
        paddles == settings_.contour ? complete(at, chain) : extended(at, origin, paddles, chain);
    used_[at] = false;
    return found;
  }

  bool complete(size_t at, int chain) {
    const bool at_goal = strokes_[at].head_y == goal_.y && strokes_[at].head_x == goal_.x;
    if (chain == marked_ && !at_goal) return false;
    if (chain == 2) return true;
    for (size_t s = 0; s < strokes_.size(); s++)
      if (!used_[s] && starts(s, 2)) return true;
    return false;
  }

  bool extended(size_t, const Origin& from, int paddles, int chain) {
    const double step = settings_.length + 2 * margin_;
    const int y = from.pivot_y + up(step * from.y), x = from.pivot_x + up(step * from.x);
    for (size_t next = 0; next < strokes_.size(); next++) {
      if (used_[next]) continue;
      for (const Origin& o : origins_[next]) {
        if (o.seed || o.pivot_y != y || o.pivot_x != x) continue;
        const double turn = std::acos(std::clamp(o.y * from.y + o.x * from.x, -1.0, 1.0));
        if (turn * settings_.continuity < M_PI / 2 && walk(next, o, paddles + 1, chain))
          return true;
      }
    }
    return false;
  }

  std::vector<Stroke> strokes_;
  const Settings& settings_;
  double margin_;
  std::vector<std::vector<Origin>> origins_;
  std::vector<bool> used_;
  Offset goal_{};
  int marked_ = 0;  // the chain whose tip is the second marker
};

struct Level {
  int side, contour, count;
};
void PrintTo(const Level& level, std::ostream* out) {
  *out << "side " << level.side << " contour " << level.contour;
}

class SceneLevels : public testing::TestWithParam<Level> {};

TEST_P(SceneLevels, ASolverOfStrokesAgreesWithEveryLabel) {
  const auto [side, contour, count] = GetParam();
  const Scenes scenes(settings_of(side, contour, -1));
  int ambiguous = 0, ones = 0;
  for (int i = 0; i < count; i++) {
    Rng random = rng(7, "solver", static_cast<uint64_t>(i));
    const Scene scene = scenes.draw(random);
    Solver solver(scene, scenes.settings());
    EXPECT_TRUE(solver.reads(scene.label, scene.markers)) << i;
    ambiguous += solver.reads(1 - scene.label, scene.markers);
    ones += scene.label;
  }
  // Where the two snakes meet so that either could go on as the other, both readings are lawful:
  // measured in 0 of 5000 at side 16, 3 of 5000 at 24, 8 of 5000 and 5 of 3000 at 32 (contours 6
  // and 14), 0 of 500 at 64.
  EXPECT_LE(ambiguous, side == 24 || side == 32 ? count / 200 : 0);
  EXPECT_NEAR(ones, count / 2.0, 4 * std::sqrt(count) / 2);
}

INSTANTIATE_TEST_SUITE_P(Sides, SceneLevels,
                         testing::Values(Level{16, 6, 1000}, Level{24, 9, 1000}, Level{32, 6, 1000},
                                         Level{32, 14, 600}, Level{64, 14, 200},
                                         Level{128, 14, 40}));

TEST(Scenes, HoldWhatTheSettingsSay) {
  for (const int side : {16, 32}) {
    const Scenes scenes(settings_of(side, 6, -1));
    const Settings& s = scenes.settings();
    double missing = 0;
    for (int i = 0; i < 300; i++) {
      Rng random = rng(3, "content", static_cast<uint64_t>(i));
      const Scene scene = scenes.draw(random);
      ASSERT_LE(scene.snakes.size(), 2u + static_cast<size_t>(s.distractors));
      missing += s.distractors + 2 - static_cast<double>(scene.snakes.size());
      for (size_t k = 0; k < scene.snakes.size(); k++)
        ASSERT_EQ(static_cast<int>(scene.snakes[k].size()),
                  k < 2 ? s.contour : s.distractor_contour);
      const Offset first = scene.snakes[0][0].anchor, second = scene.snakes[1][0].anchor;
      ASSERT_GE(std::min({first.y, first.x, side - 1 - first.y, side - 1 - first.x}), s.frame);
      ASSERT_NEAR(std::hypot(first.y - second.y, first.x - second.x), s.seed_distance, 0.71);
      const int from = first.y == scene.markers[0].y && first.x == scene.markers[0].x ? 0 : 1;
      const Paddle& tail = scene.snakes[static_cast<size_t>(from)].front();
      const Paddle& tip =
          scene.snakes[static_cast<size_t>(scene.label == 1 ? from : 1 - from)].back();
      ASSERT_TRUE(tail.tail_y == scene.markers[0].y && tail.tail_x == scene.markers[0].x);
      ASSERT_TRUE(tip.head_y == scene.markers[1].y && tip.head_x == scene.markers[1].x);
      ASSERT_EQ(*std::max_element(scene.grey.begin(), scene.grey.end()), 255);
      ASSERT_EQ(*std::min_element(scene.grey.begin(), scene.grey.end()), 0);
    }
    EXPECT_LT(missing / 300, 0.1 * s.distractors) << side;
  }
}

// Strokes one pixel thick, up to the roughness of their edges.
TEST(Scenes, PaddlesOfDifferentSnakesKeepApart) {
  const Scenes scenes(settings_of(64, 14, -1));
  const auto away = [](const Paddle& a, const Paddle& b) {  // between points of two strokes
    double least = 1e9;
    for (int i = 0; i <= 10; i++)
      for (int j = 0; j <= 10; j++) {
        const double y =
            a.tail_y + (a.head_y - a.tail_y) * i / 10 - b.tail_y - (b.head_y - b.tail_y) * j / 10;
        const double x =
            a.tail_x + (a.head_x - a.tail_x) * i / 10 - b.tail_x - (b.head_x - b.tail_x) * j / 10;
        least = std::min(least, std::hypot(y, x));
      }
    return least;
  };
  for (int i = 0; i < 60; i++) {
    Rng random = rng(5, "apart", static_cast<uint64_t>(i));
    const Scene scene = scenes.draw(random);
    for (size_t k = 0; k < scene.snakes.size(); k++)
      for (size_t l = 0; l < k; l++)
        for (const Paddle& p : scene.snakes[k])
          for (const Paddle& q : scene.snakes[l])
            ASSERT_GE(away(p, q), 0.75) << i << ' ' << k << ' ' << l;
  }
}

// A snake's strokes have the same grey levels whichever is marked: with the markers' surroundings
// left out, the mean grey level along the marked snake and the other one agree.
TEST(Scenes, TheMarkedSnakeIsNotBrighter) {
  const Scenes scenes(settings_of(32, 14, -1));
  double marked = 0, other = 0, squares = 0, count = 0;
  for (int i = 0; i < 1000; i++) {
    Rng random = rng(9, "bright", static_cast<uint64_t>(i));
    const Scene scene = scenes.draw(random);
    const Offset tail = scene.snakes[0][0].anchor;
    const bool first = tail.y == scene.markers[0].y && tail.x == scene.markers[0].x;
    for (size_t k = 0; k < 2; k++)
      for (size_t p = 3; p < 11; p++) {
        const Paddle& paddle = scene.snakes[k][p];
        const auto y = static_cast<size_t>((paddle.tail_y + paddle.head_y) / 2);
        const auto x = static_cast<size_t>((paddle.tail_x + paddle.head_x) / 2);
        const double grey = scene.grey[y * 32 + x];
        ((k == 0) == first ? marked : other) += grey;
        squares += grey * grey;
        count += 0.5;
      }
  }
  const double deviation = std::sqrt(squares / (2 * count) - std::pow(marked / count, 2));
  EXPECT_NEAR(marked / count, other / count, 4 * deviation * std::sqrt(2 / count));
}

TEST(Scenes, TheSameStreamGivesTheSameScene) {
  const Scenes scenes(settings_of(24, 9, 2));
  Rng a = rng(4, "twice"), b = rng(4, "twice");
  for (int i = 0; i < 20; i++) {
    const Scene first = scenes.draw(a), second = scenes.draw(b);
    ASSERT_EQ(first.grey, second.grey);
    ASSERT_EQ(first.evidence, second.evidence);
    ASSERT_EQ(first.label, second.label);
  }
}

TEST(Scenes, WithoutRoomIsAnError) {
  EXPECT_THROW(Scenes(settings_of(16, 30, -1)), Error);
  EXPECT_THROW(settings_of(20, 6, -1), Error);
}

}  // namespace
}  // namespace attn::snakes::scene_test
