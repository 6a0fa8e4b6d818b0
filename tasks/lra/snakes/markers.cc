// The search of markers.h. A paddle is thinner than a marker, so that a disc on a paddle has dark
// pixels.
#include "tasks/lra/snakes/markers.h"

#include <algorithm>
#include <cstdlib>

#include "tasks/lra/snakes/raster.h"

namespace attn::snakes {

std::array<Offset, 2> find_markers(const std::vector<uint8_t>& grey, int side, double radius) {
  const std::vector<Offset> disc = disc_offsets(static_cast<int>(radius));
  const auto darkest = [&](int y, int x) {
    int level = 256;
    for (const Offset& o : disc) {
      const int v = y + o.y, u = x + o.x;
      if (v < 0 || u < 0 || v >= side || u >= side) continue;  // a marker may be cut by the edge
      level = std::min<int>(level, grey[static_cast<size_t>(v * side + u)]);
      if (level == 0) break;
    }
    return level;
  };
  std::array<Offset, 2> found{};
  for (int marker = 0; marker < 2; marker++) {
    int best = -1;
    for (int y = 0; y < side; y++)
      for (int x = 0; x < side; x++) {
        const int dy = std::abs(y - found[0].y), dx = std::abs(x - found[0].x);
        if (marker == 1 && std::max(dy, dx) <= radius) continue;
        const int level = darkest(y, x);
        if (level > best) best = level, found[static_cast<size_t>(marker)] = {y, x};
      }
  }
  return found;
}

}  // namespace attn::snakes
