// A picture of two long snakes, shorter distractors and two markers that lie on the ends of one
// snake (label 1) or of both (label 0). Linsley et al. 2018, arXiv:1805.08315, in the sizes of Long
// Range Arena (arXiv:2011.04006, 2.2.5).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/rng.h"
#include "tasks/lra/snakes/paddle.h"
#include "tasks/lra/snakes/placement.h"

namespace attn::snakes {

struct Scene {
  int label = 0;
  double margin = 0;                // half the gap between paddles
  std::array<Offset, 2> markers{};  // centres
  std::vector<Snake> snakes;        // the two targets, then the distractors
  std::vector<uint8_t> grey;        // [side, side], stretched to 0..255
  // Sorted pixels of the markers and of both target snakes. They do not depend on the label.
  std::vector<int32_t> evidence;
};

class Scenes {
 public:
  explicit Scenes(const Settings& settings);  // Error when two target snakes find no room
  const Settings& settings() const { return settings_; }
  Scene draw(Rng& random) const;

 private:
  void paint(const Paddles& paddles, Scene& scene) const;
  Settings settings_;
  std::vector<Paddles> paddles_;  // by margin
  Stamp marker_;
};

// The settings of Long Range Arena at sides 32, 64 and 128, and similar ones at 16 and 24.
// `distractors` is the number of distractors; -1 means the default number. Error for another side.
Settings settings_of(int side, int contour, int distractors);

}  // namespace attn::snakes
