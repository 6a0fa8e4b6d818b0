// Directions on the pixel grid for snakes: sines without libm, whole degrees, and the pixels of a
// circle with the weight of turning towards each. Linsley et al. 2018, arXiv:1805.08315. Tables.
#pragma once

#include <vector>

namespace attn::snakes {

struct Offset {
  int y = 0, x = 0;  // pixels; y grows downwards
};

struct Heading {
  double y = 0, x = 0;  // a unit vector
};

double sine(double radians);         // |radians| <= 8, rounded to a multiple of 2^-40
Heading degrees(int whole);          // sine and cosine of any whole number of degrees
double angle(Heading a, Heading b);  // between two unit vectors, in [0, pi]

// The offset of a point moved by `distance` along `heading`, rounded up in each component.
Offset moved(Heading heading, double distance);

// The distinct pixels that steps of one pixel along a circle of this radius fall into.
std::vector<Offset> circle_pixels(double radius);

// cos² of `continuity` times the turn from `from` to `to`, 0 from a right angle on.
double turn_weight(Heading from, Heading to, double continuity);

}  // namespace attn::snakes
