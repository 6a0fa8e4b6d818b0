// The search for markers against the scenes that were drawn.
#include "tasks/lra/snakes/markers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tasks/lra/snakes/scene.h"

namespace attn::snakes::markers_test {
namespace {

TEST(Markers, AreFoundInThePixels) {
  for (const int side : {16, 24, 32, 64}) {
    const Scenes scenes(settings_of(side, 6, -1));
    int found = 0;
    constexpr int kCount = 300;
    for (int i = 0; i < kCount; i++) {
      Rng random = rng(2, "markers", static_cast<uint64_t>(i));
      const Scene scene = scenes.draw(random);
      const auto places = find_markers(scene.grey, side, scenes.settings().marker_radius);
      const auto near = [](Offset a, Offset b) {
        return std::max(std::abs(a.y - b.y), std::abs(a.x - b.x)) <= 1;
      };
      const auto& m = scene.markers;
      found += (near(places[0], m[0]) && near(places[1], m[1])) ||
               (near(places[0], m[1]) && near(places[1], m[0]));
    }
    EXPECT_GE(found, kCount * 9 / 10) << side;
  }
}

}  // namespace
}  // namespace attn::snakes::markers_test
