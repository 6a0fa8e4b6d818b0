// Finds the two markers of a picture of snakes from its pixels: the brightest discs.
// O(side² · radius²), less where the picture is dark.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tasks/lra/snakes/heading.h"

namespace attn::snakes {

// The pixels where a disc of this radius is brightest in its darkest pixel, far enough apart to be
// two discs; equals by raster order. `grey` is [side, side], side² >= 2.
std::array<Offset, 2> find_markers(const std::vector<uint8_t>& grey, int side, double radius);

}  // namespace attn::snakes
