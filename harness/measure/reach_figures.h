// What a measurement of reach finds; see reach.h.
#pragma once

#include <cstdint>
#include <vector>

namespace attn {

// Of an input `distance` positions before the output; after it where `distance` is negative.
// Medians over pairs of an output and an input so far apart.
struct Influence {
  int64_t distance = 0;
  // Root mean square singular value of d(output row)/d(input row), estimated for each output from
  // one random direction.
  double gradient = 0;
  // ‖change of the output row‖ / ‖output row‖ where the input row is replaced by another N(0, 1).
  double perturbation = 0;
};

// Distances of an input before an output and after it; 0: there is none.
struct ReachDistances {
  int64_t past = 0, future = 0;
};

struct ReachFigures {
  int64_t positions = 0;  // outputs whose gradient was taken, and inputs that were replaced
  ReachDistances gradient, perturbation;  // the largest whose influence is above the floor
  // The largest of a pair whose gradient is not zero, however small: what the pattern allows.
  ReachDistances connected;
  std::vector<Influence> by_distance;  // ascending; see reach_distances()
};

}  // namespace attn
