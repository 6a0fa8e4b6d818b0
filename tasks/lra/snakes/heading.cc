// Series for sine and arc tangent, which give the same bits on every platform; see heading.h. About
// 30 terms per call. Only tables use them.
#include "tasks/lra/snakes/heading.h"

#include <algorithm>
#include <cmath>

namespace attn::snakes {
namespace {

constexpr double kPi = 3.14159265358979324;

// Of a tangent up to 1: halved twice, where eight terms of the series reach 1e-13.
double arc_tangent(double t) {
  for (int i = 0; i < 2; i++) t = t / (1 + std::sqrt(1 + t * t));
  double sum = 0, power = t;
  for (int n = 1; n < 17; n += 2, power *= -t * t) sum += power / n;
  return 4 * sum;
}

}  // namespace

double sine(double radians) {
  double sum = 0, term = radians;
  for (int n = 1; n < 60; n += 2) {
    sum += term;
    term *= -radians * radians / ((n + 1) * (n + 2));
  }
  constexpr double kGrid = 1099511627776;  // 2^40: sin 30° is 1/2 and cos 90° is 0
  return std::floor(sum * kGrid + 0.5) / kGrid;
}

Heading degrees(int whole) {
  const int turn = ((whole % 360) + 360) % 360;
  return {sine(turn * kPi / 180), sine((turn + 90) % 360 * kPi / 180)};
}

double angle(Heading a, Heading b) {
  const double along = a.y * b.y + a.x * b.x, across = std::abs(a.y * b.x - a.x * b.y);
  // The tangent of half the angle, from whichever side keeps it below 1.
  const double half = arc_tangent(across / (1 + std::abs(along)));
  return along >= 0 ? 2 * half : kPi - 2 * half;
}

Offset moved(Heading heading, double distance) {
  constexpr double kNoise = 1e-9;  // of the products: 5·(3/5) must not become 4
  return {static_cast<int>(std::ceil(distance * heading.y - kNoise)),
          static_cast<int>(std::ceil(distance * heading.x - kNoise))};
}

std::vector<Offset> circle_pixels(double radius) {
  std::vector<Offset> pixels;
  for (int step = 0; step < 2 * kPi * radius; step++) {
    const double at = step / radius;
    const double y = radius * sine(at), x = radius * sine(at + kPi / 2);
    pixels.push_back({static_cast<int>(std::floor(y)), static_cast<int>(std::floor(x))});
  }
  const auto before = [](Offset a, Offset b) { return a.y != b.y ? a.y < b.y : a.x < b.x; };
  const auto same = [](Offset a, Offset b) { return a.y == b.y && a.x == b.x; };
  std::sort(pixels.begin(), pixels.end(), before);
  pixels.erase(std::unique(pixels.begin(), pixels.end(), same), pixels.end());
  return pixels;
}

double turn_weight(Heading from, Heading to, double continuity) {
  const double turn = continuity * angle(from, to);
  if (turn >= kPi / 2) return 0;
  const double cosine = sine(kPi / 2 - turn);
  return cosine * cosine;
}

}  // namespace attn::snakes
