// The tables of paddle.h, built once per setting in about 10 ms at side 128.
#include "tasks/lra/snakes/paddle.h"

#include <cmath>

namespace attn::snakes {
namespace {

constexpr int kFineGrid = 2;  // fine pixels a pixel

Paddles::Stroke draw(const Settings& s, double margin, Heading heading) {
  const int reach =
      s.length + static_cast<int>(std::ceil(s.thickness) + std::ceil(margin + s.clearance));
  Paddles::Stroke stroke;
  stroke.far = moved(heading, kFineGrid * s.length);
  Fine line(kFineGrid * reach);
  line.line(stroke.far, static_cast<int>(kFineGrid * s.thickness + 0.5));
  stroke.line = line.halved();
  stroke.mask = line.dilated(static_cast<int>(kFineGrid * (margin + s.clearance))).halved();
  each_pixel(stroke.mask, {reach, reach}, 2 * reach + 1, [&](int y, int x, uint8_t grey) {
    if (grey == 255) stroke.full.push_back({y - reach, x - reach});
  });
  return stroke;
}

}  // namespace

Paddles::Paddles(const Settings& s, double margin)
    : margin_(margin), around_(disc_offsets(static_cast<int>(margin + s.clearance))) {
  for (int degree = 0; degree < 360; degree++) {
    headings_.push_back(degrees(degree));
    forward_.push_back(draw(s, margin, headings_.back()));
  }
  for (const Offset& pixel : circle_pixels(s.length + margin)) {
    const double norm = std::sqrt(pixel.y * pixel.y + pixel.x * pixel.x);
    const Heading heading{pixel.y / norm, pixel.x / norm};
    candidates_.push_back({pixel, static_cast<int>(headings_.size())});
    headings_.push_back(heading);
    backward_.push_back(draw(s, margin, {-heading.y, -heading.x}));
  }
  for (const Heading& from : headings_)
    for (const Candidate& to : candidates_)
      weights_.push_back(turn_weight(from, heading(to.heading), s.continuity));
}

Paddle Paddles::seed(Offset tail, int degrees) const {
  Paddle p{.anchor = tail, .heading = degrees, .seed = true};
  p.tail_y = tail.y, p.tail_x = tail.x;
  const Offset far = stroke(p).far;
  p.head_y = tail.y + far.y / 2.0, p.head_x = tail.x + far.x / 2.0;
  return p;
}

Paddle Paddles::extension(Offset head, int heading) const {
  Paddle p{.anchor = head, .heading = heading, .seed = false};
  p.head_y = head.y, p.head_x = head.x;
  const Offset far = stroke(p).far;
  p.tail_y = head.y + far.y / 2.0, p.tail_x = head.x + far.x / 2.0;
  return p;
}

}  // namespace attn::snakes
