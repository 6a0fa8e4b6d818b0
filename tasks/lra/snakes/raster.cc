// Lines, dilation and the Lanczos filter of raster.h. The filter is applied first along the rows,
// then along the columns.
#include "tasks/lra/snakes/raster.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace attn::snakes {
namespace {

// Lanczos with a = 3 at scale 1/2: w(k) = sinc(k/2)·sinc(k/6) at fine pixels k = -5..5 around a
// coarse one, sinc(x) = sin(πx)/(πx), divided by their sum.
constexpr int kTaps = 5;
constexpr double kFilter[kTaps + 1] = {0.5014294, 0.3048325, 0, -0.0677406, 0, 0.0121933};

uint8_t to_grey(double value) {
  return static_cast<uint8_t>(std::floor(255 * std::clamp(value, 0.0, 1.0) + 0.5));
}

}  // namespace

Fine::Fine(int reach)
    : reach_(reach),
      width_(2 * reach + 1),
      on_(static_cast<size_t>(width_) * static_cast<size_t>(width_)) {}

bool Fine::at(int y, int x) const {
  return std::abs(y) <= reach_ && std::abs(x) <= reach_ &&
         on_[static_cast<size_t>((y + reach_) * width_ + x + reach_)] != 0;
}

void Fine::set(int y, int x) {
  if (std::abs(y) <= reach_ && std::abs(x) <= reach_)
    on_[static_cast<size_t>((y + reach_) * width_ + x + reach_)] = 1;
}

void Fine::line(Offset to, int width) {
  const int steps = std::max({std::abs(to.y), std::abs(to.x), 1});
  for (int i = 0; i <= steps; i++) {  // one pixel a step, rounded half up
    const double y = static_cast<double>(to.y) * i / steps;
    const double x = static_cast<double>(to.x) * i / steps;
    set(static_cast<int>(std::floor(y + 0.5)), static_cast<int>(std::floor(x + 0.5)));
  }
  const int square = to.y * to.y + to.x * to.x;
  if (width < 2) return;
  for (int y = -reach_; y <= reach_; y++)
    for (int x = -reach_; x <= reach_; x++) {
      const int along = y * to.y + x * to.x, across = y * to.x - x * to.y;
      if (along >= 0 && along <= square && 4 * across * across <= width * width * square) set(y, x);
    }
}

void Fine::disc(double radius) {
  for (int y = -reach_; y <= reach_; y++)
    for (int x = -reach_; x <= reach_; x++)
      if (y * y + x * x <= radius * radius) set(y, x);
}

Fine Fine::dilated(int radius) const {
  Fine result(reach_);
  const std::vector<Offset> disc = disc_offsets(radius);
  for (int y = -reach_; y <= reach_; y++)
    for (int x = -reach_; x <= reach_; x++)
      if (at(y, x))
        for (const Offset& o : disc) result.set(y + o.y, x + o.x);
  return result;
}

Stamp Fine::halved() const {
  const int reach = reach_ / 2, side = 2 * reach + 1;
  std::vector<double> rows(static_cast<size_t>(width_ * side));  // [fine rows, coarse columns]
  for (int y = -reach_; y <= reach_; y++)
    for (int x = -reach; x <= reach; x++) {
      double sum = 0;
      for (int k = -kTaps; k <= kTaps; k++) sum += kFilter[std::abs(k)] * at(y, 2 * x + k);
      rows[static_cast<size_t>((y + reach_) * side + x + reach)] = sum;
    }
  Stamp all{-reach, -reach, side, side, std::vector<uint8_t>(static_cast<size_t>(side * side))};
  int top = side, bottom = -1, left = side, right = -1;
  for (int y = 0; y < side; y++)
    for (int x = 0; x < side; x++) {
      double sum = 0;
      for (int k = -kTaps; k <= kTaps; k++) {
        const int row = 2 * y + k;
        if (row >= 0 && row < width_)
          sum += kFilter[std::abs(k)] * rows[static_cast<size_t>(row * side + x)];
      }
      const uint8_t grey = to_grey(sum);
      all.grey[static_cast<size_t>(y * side + x)] = grey;
      if (grey == 0) continue;
      top = std::min(top, y), bottom = std::max(bottom, y);
      left = std::min(left, x), right = std::max(right, x);
    }
  Stamp cut{top - reach, left - reach, bottom - top + 1, right - left + 1, {}};
  each_pixel(all, {reach - top, reach - left}, 2 * side, [&](int y, int x, uint8_t grey) {
    if (y < cut.rows && x < cut.cols) cut.grey.push_back(grey);
  });
  return cut;
}

Canvas::Canvas(int side, int border)
    : side_(side), grey_(static_cast<size_t>(side) * static_cast<size_t>(side)) {
  for (int y = 0; y < side_; y++)
    for (int x = 0; x < side_; x++) {
      const bool white = std::min({y, x, side_ - 1 - y, side_ - 1 - x}) < border;
      if (white) grey_[index({y, x})] = 255;
    }
}

void Canvas::add(const Stamp& stamp, Offset anchor) {
  uint8_t* const canvas = grey_.data();
  each_pixel(stamp, anchor, side_, [&](int y, int x, uint8_t grey) {
    uint8_t& here = canvas[index({y, x})];
    here = std::max(here, grey);
  });
}

int Canvas::highest_sum(const Stamp& stamp, Offset anchor) const {
  int highest = 0;
  each_pixel(stamp, anchor, side_, [&](int y, int x, uint8_t grey) {
    highest = std::max(highest, grey_[index({y, x})] + grey);
  });
  return highest;
}

int Canvas::highest_around(Offset p, const std::vector<Offset>& offsets) const {
  int highest = 0;
  for (const Offset& o : offsets) {
    const Offset at_o{p.y + o.y, p.x + o.x};
    if (holds(at_o)) highest = std::max<int>(highest, at(at_o));
  }
  return highest;
}

int highest_sum(const Stamp& a, Offset at_a, const Stamp& b, Offset at_b) {
  const int dy = at_a.y + a.top - at_b.y - b.top, dx = at_a.x + a.left - at_b.x - b.left;
  int highest = 0;
  for (int i = std::max(0, -dy); i < std::min(a.rows, b.rows - dy); i++)
    for (int j = std::max(0, -dx); j < std::min(a.cols, b.cols - dx); j++)
      highest = std::max(highest, a.grey[static_cast<size_t>(i * a.cols + j)] +
                                      b.grey[static_cast<size_t>((i + dy) * b.cols + j + dx)]);
  return highest;
}

std::vector<Offset> disc_offsets(int radius) {
  std::vector<Offset> offsets;
  for (int y = -radius; y <= radius; y++)
    for (int x = -radius; x <= radius; x++)
      if (y * y + x * x <= radius * radius) offsets.push_back({y, x});
  return offsets;
}

}  // namespace attn::snakes
