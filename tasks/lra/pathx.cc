// pathx: pathfinder at side 128, a sequence of 16384 grey pixels.
// Long Range Arena, arXiv:2011.04006, 2.2.6; after Linsley et al. 2018, arXiv:1805.08315.
// About 7 ms per picture.
#include "tasks/data/released.h"
#include "tasks/lra/snakes/snake_task.h"

namespace attn::tasks {

TaskInfo pathx() {
  return {
      .name = "pathx",
      .summary = "pathfinder at 16384 pixels: do two markers lie on the same dashed curve?",
      .source = "arXiv:2011.04006 (Long Range Arena), 2.2.6; after arXiv:1805.08315 (Pathfinder)",
      .datasheet =
          "Pathfinder's pictures at LRA's sizes for side 128: paddles of 5 pixels, 1.5 thick,\n"
          "half the gap between them 2 or 3 pixels (drawn for each picture), 20 pixels between\n"
          "the tails of the long snakes, turns of at most 50 degrees, 35 distracting paddles in\n"
          "snakes of contour/3, markers of radius 3. Side 64: LRA's sizes for 64 (paddles 5 and 1\n"
          "thick, half a gap 1, tails 12 apart, 22 distracting paddles, markers 2.5).\n"
          "Everything else is told by the datasheet of `pathfinder`.\n"
          "Inputs: tokens, 1 + grey level; or values, (grey/255 - 0.104)/0.221.\n"
          "Label: 1 when the markers lie on one snake. Evidence: the pixels of the markers and of\n"
          "both long snakes.\n"
          "Slices: marker_distance (pixels), distractors (short snakes that found room).",
      .params = snakes::snake_params(
          {"side", 128, "64 or 128 pixels along an edge; the length is its square", 64, 128}),
      .presets = {{"lra", "Long Range Arena's, length 16384", {{"side", 128}}},
                  {"standard", "length 4096", {{"side", 64}}}},
      .make = make_task<snakes::SnakeTask>,
      .released = &data::pathfinder_png_format()};
}

}  // namespace attn::tasks
