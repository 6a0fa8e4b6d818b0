// Directions on the pixel grid for the snakes of Pathfinder: sines without libm, the pixels of a
// circle, and the weights of turns. Linsley et al. 2018, arXiv:1805.08315.
#pragma once

#include <vector>

namespace attn::snakes {

struct Offset {
  int y = 0, x = 0;  // pixels; y grows downwards
};

struct Heading {
  double y = 0, x = 0;  // a unit vector
};

double sine(double radians);         // |radians| <= 8; rounded to a multiple of 2^-40
Heading degrees(int whole);          // sine and cosine of any whole number of degrees
double angle(Heading a, Heading b);  // between two unit vectors, in [0, pi]

// The offset of a point moved by `distance` along `heading`, rounded up in each component.
Offset moved(Heading heading, double distance);

// The distinct pixels at steps of one pixel along a circle of this radius.
std::vector<Offset> circle_pixels(double radius);

// cos²(continuity · turn), where `turn` is the angle between both headings; 0 if the product is a
// right angle or more.
double turn_weight(Heading from, Heading to, double continuity);

}  // namespace attn::snakes
