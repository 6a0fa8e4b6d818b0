// Grey pixels for snakes: lines and discs that are drawn at twice the resolution and reduced by a
// Lanczos filter, and square canvases to add them to. O(pixels) per stamp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tasks/lra/snakes/heading.h"

namespace attn::snakes {

// A small grey picture, placed by the offset of its first pixel from an anchor; [rows, cols].
struct Stamp {
  int top = 0, left = 0, rows = 0, cols = 0;
  std::vector<uint8_t> grey;
};

// A picture at twice the resolution. Pixel (0, 0) is the anchor; coordinates are in [-reach,
// reach].
class Fine {
 public:
  explicit Fine(int reach);         // in fine pixels; even
  void line(Offset to, int width);  // from the anchor to `to`, `width` fine pixels thick
  void disc(double radius);         // around the anchor
  Fine dilated(int radius) const;   // by a disc
  Stamp halved() const;             // cut to the pixels above 0

 private:
  bool at(int y, int x) const;
  void set(int y, int x);
  int reach_, width_;
  std::vector<uint8_t> on_;  // [width, width]
};

// Grey values 0..255 on side × side pixels.
class Canvas {
 public:
  Canvas(int side, int border);  // black, with `border` white pixels along each edge
  int side() const { return side_; }
  bool holds(Offset p) const { return p.y >= 0 && p.x >= 0 && p.y < side_ && p.x < side_; }
  uint8_t at(Offset p) const { return grey_[index(p)]; }
  const std::vector<uint8_t>& grey() const { return grey_; }
  void add(const Stamp& stamp, Offset anchor);  // takes the maximum of both in each pixel
  // The highest sum of the stamp and the canvas in one pixel.
  int highest_sum(const Stamp& stamp, Offset anchor) const;
  // The highest grey value of the pixels p + offset that are on the canvas.
  int highest_around(Offset p, const std::vector<Offset>& offsets) const;

 private:
  size_t index(Offset p) const {
    return static_cast<size_t>(p.y) * static_cast<size_t>(side_) + static_cast<size_t>(p.x);
  }
  int side_;
  std::vector<uint8_t> grey_;
};

// Calls visit(y, x, grey) in raster order for the pixels of the stamp on a canvas of side × side.
template <class Visit>
void each_pixel(const Stamp& stamp, Offset anchor, int side, const Visit& visit) {
  const int y0 = anchor.y + stamp.top, x0 = anchor.x + stamp.left;
  const int left = std::max(0, x0), right = std::min(side, x0 + stamp.cols);
  for (int y = std::max(0, y0); y < std::min(side, y0 + stamp.rows); y++) {
    const uint8_t* row = stamp.grey.data() + static_cast<ptrdiff_t>(y - y0) * stamp.cols;
    for (int x = left; x < right; x++) visit(y, x, row[x - x0]);
  }
}

// The highest sum of two stamps in a pixel that both have; 0 when they do not overlap.
int highest_sum(const Stamp& a, Offset at_a, const Stamp& b, Offset at_b);

std::vector<Offset> disc_offsets(int radius);  // y² + x² <= radius²

}  // namespace attn::snakes
