// Seeds, extensions and their rejection; see placement.h.
#include "tasks/lra/snakes/placement.h"

#include <cmath>

namespace attn::snakes {
namespace {

constexpr int kAttempts = 3;       // at a seed or at one extension
constexpr int kFreeGrey = 76;      // 0.3 of white: fainter edges of a mask leave a pixel free
constexpr int kOverlapGrey = 459;  // 1.8 of white: two masks may share their edges, not more
constexpr double kDeadEnd = 1e-4;  // total weight of the candidates

}  // namespace

bool Placement::occupied_seed(const Paddle& p, int frame) const {
  for (const Offset& o : paddles_.stroke(p).full) {
    const int y = p.anchor.y + o.y, x = p.anchor.x + o.x, last = settings_.side - 1 - frame;
    if (y < frame || x < frame || y > last || x > last || occupied_.at({y, x}) > kFreeGrey)
      return true;
  }
  return false;
}

// The first paddle's pivot lies behind its tail; no snake starts so close to the edge that its head
// or pivot is outside.
std::optional<Placement::Tip> Placement::tip(const Paddle& seed) const {
  const Heading h = paddles_.heading(seed.heading);
  const Offset ahead = moved(h, settings_.length);
  const Offset head{seed.anchor.y + ahead.y, seed.anchor.x + ahead.x};
  const Offset back = moved({-h.y, -h.x}, settings_.length + paddles_.margin());
  const Offset pivot{head.y + back.y, head.x + back.x};
  if (!occupied_.holds(seed.anchor) || !occupied_.holds(head) || !occupied_.holds(pivot)) return {};
  return Tip{pivot, {seed}};
}

// A tail drawn evenly from the pixels where the paddle is free: by chance while that is quick, else
// from their list.
std::optional<Placement::Tip> Placement::first_seed(int frame) {
  constexpr int kQuick = 32;
  const int inner = settings_.side - 2 * frame;
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    const int degrees = integer(360);
    std::optional<Paddle> found;
    for (int draw = 0; draw < kQuick && !found; draw++) {
      const Paddle p = paddles_.seed({frame + integer(inner), frame + integer(inner)}, degrees);
      if (!occupied_seed(p, frame)) found = p;
    }
    if (!found) {
      std::vector<Paddle> free;
      for (int i = 0; i < inner * inner; i++) {
        const Paddle p = paddles_.seed({frame + i / inner, frame + i % inner}, degrees);
        if (!occupied_seed(p, frame)) free.push_back(p);
      }
      if (free.empty()) return {};
      found = free[static_cast<size_t>(integer(static_cast<int>(free.size())))];
    }
    if (const auto result = tip(*found)) return result;
  }
  return {};
}

std::optional<Placement::Tip> Placement::second_seed(const Paddle& first) {
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    const int degrees = integer(360);
    const Heading away = paddles_.heading(integer(360));
    const double distance = settings_.seed_distance;
    const Offset tail{first.anchor.y + static_cast<int>(std::floor(distance * away.y + 0.5)),
                      first.anchor.x + static_cast<int>(std::floor(distance * away.x + 0.5))};
    const Paddle seed = paddles_.seed(tail, degrees);
    const auto result = tip(seed);
    if (result && !overlaps(first, seed)) return result;
  }
  return {};
}

bool Placement::extend(Tip& tip, const Paddle* other) {
  const Paddle last = tip.snake.back();
  const Offset step =
      moved(paddles_.heading(last.heading), settings_.length + 2 * paddles_.margin());
  const Offset pivot{tip.pivot.y + step.y, tip.pivot.x + step.x};
  const auto& candidates = paddles_.candidates();
  const auto head = [&](size_t i) {
    return Offset{pivot.y + candidates[i].head.y, pivot.x + candidates[i].head.x};
  };
  weights_.assign(candidates.size(), 0);
  double total = 0;
  for (size_t i = 0; i < candidates.size(); i++) {
    const double turn = paddles_.weight(last.heading, i);
    if (turn <= 0 || !occupied_.holds(head(i))) continue;
    weights_[i] = turn * (255 - occupied_.highest_around(head(i), paddles_.around())) / 255;
    total += weights_[i];
  }
  if (total < kDeadEnd) return false;
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    double left = random_.uniform() * total;
    size_t chosen = candidates.size();
    for (size_t i = 0; i < candidates.size() && left >= 0; i++)
      if (weights_[i] > 0) left -= weights_[i], chosen = i;
    const Paddle p = paddles_.extension(head(chosen), candidates[chosen].heading);
    if (occupied_.highest_sum(paddles_.stroke(p).mask, p.anchor) >= kOverlapGrey) continue;
    if (other && overlaps(p, *other)) continue;
    occupy(last);
    tip.pivot = pivot;
    tip.snake.push_back(p);
    return true;
  }
  return false;
}

bool Placement::overlaps(const Paddle& a, const Paddle& b) const {
  return highest_sum(paddles_.stroke(a).mask, a.anchor, paddles_.stroke(b).mask, b.anchor) >=
         kOverlapGrey;
}

void Placement::occupy(const Paddle& p) { occupied_.add(paddles_.stroke(p).mask, p.anchor); }

std::optional<std::array<Snake, 2>> Placement::targets() {
  occupied_ = empty_;
  auto first = first_seed(settings_.frame);
  if (!first) return {};
  auto second = second_seed(first->snake[0]);
  if (!second) return {};
  for (int paddle = 1; paddle < settings_.contour; paddle++)
    if (!extend(*first, &second->snake.back()) || !extend(*second, &first->snake.back())) return {};
  occupy(first->snake.back());
  occupy(second->snake.back());
  return std::array<Snake, 2>{first->snake, second->snake};
}

Snake Placement::distractor() {
  constexpr int kFrame = 1;
  const Canvas before = occupied_;
  auto tip = first_seed(kFrame);
  bool grown = tip.has_value();
  for (int paddle = 1; paddle < settings_.distractor_contour && grown; paddle++)
    grown = extend(*tip, nullptr);
  if (!grown) {
    occupied_ = before;
    return {};
  }
  occupy(tip->snake.back());
  return tip->snake;
}

}  // namespace attn::snakes
