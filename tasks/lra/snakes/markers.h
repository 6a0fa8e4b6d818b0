// Finds the two markers of a Pathfinder picture: the brightest discs.
// O(side² · radius²), less where the picture is dark.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tasks/lra/snakes/heading.h"

namespace attn::snakes {

// The centres of the two discs of this radius whose darkest pixel is brightest. The centres differ
// by more than `radius` in a coordinate; ties go to the first in raster order. `grey` is [side,
// side], side² >= 2.
std::array<Offset, 2> find_markers(const std::vector<uint8_t>& grey, int side, double radius);

}  // namespace attn::snakes
