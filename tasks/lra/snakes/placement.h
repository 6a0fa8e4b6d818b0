// Random placement of snakes on a canvas of occupied pixels. Linsley et al. 2018, arXiv:1805.08315;
// the datasheet of tasks/lra/pathfinder.cc lists the steps. O(contour · candidates · margin²) per
// snake.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/base/rng.h"
#include "tasks/lra/snakes/paddle.h"

namespace attn::snakes {

using Snake = std::vector<Paddle>;  // from tail to tip

class Placement {
 public:
  Placement(const Settings& settings, const Paddles& paddles, Rng& random)
      : settings_(settings),
        paddles_(paddles),
        random_(random),
        empty_(settings.side, settings.padding),
        occupied_(empty_) {}

  // One attempt to grow the two target snakes in turn on an empty canvas. nullopt when it fails.
  std::optional<std::array<Snake, 2>> targets();
  // One attempt to add a distractor. Returns an empty snake and leaves the canvas as it is when the
  // attempt fails.
  Snake distractor();

 private:
  // A growing snake. Its last paddle is not in `occupied_` yet, so that the next paddle may touch
  // it.
  struct Tip {
    Offset pivot{};  // the centre of the last turn
    Snake snake{};
  };

  bool occupied_seed(const Paddle& paddle, int frame) const;
  std::optional<Tip> first_seed(int frame);
  std::optional<Tip> second_seed(const Paddle& first);
  std::optional<Tip> tip(const Paddle& seed) const;
  bool extend(Tip& tip, const Paddle* other);  // `other`: the last paddle of the other snake
  bool overlaps(const Paddle& a, const Paddle& b) const;
  void occupy(const Paddle& paddle);
  int integer(int n) { return static_cast<int>(random_.below(static_cast<uint64_t>(n))); }

  const Settings& settings_;
  const Paddles& paddles_;
  Rng& random_;
  Canvas empty_, occupied_;
  std::vector<double> weights_;  // of an extension's candidates
};

}  // namespace attn::snakes
