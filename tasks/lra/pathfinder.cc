// pathfinder: do two markers lie on the same dashed curve? The input is grey pixels in raster
// order. Linsley et al. 2018, arXiv:1805.08315; sizes of Long Range Arena, arXiv:2011.04006, 2.2.5.
// About 0.1 ms per picture at side 32 with 14 paddles, 4 ms at side 64.
#include "tasks/data/released.h"
#include "tasks/lra/snakes/snake_task.h"

namespace attn::tasks {

TaskInfo pathfinder() {
  return {
      .name = "pathfinder",
      .summary = "say whether two markers lie on the same dashed curve among others, by pixels",
      .source = "arXiv:1805.08315 (Pathfinder), as in arXiv:2011.04006 (Long Range Arena), 2.2.5",
      .datasheet =
          "A picture of side x side grey pixels in raster order. Two long snakes of `contour`\n"
          "paddles (dashes) grow in turn from tails near the centre, each paddle turned by a\n"
          "random angle (density: squared cosine) and kept off what is occupied; shorter snakes\n"
          "(contour/3 paddles) distract. One disc marks the tail of one snake, one the tip of the\n"
          "same snake (label 1) or of the other (label 0). Strokes are drawn at twice the size\n"
          "and reduced by a Lanczos filter; each picture is stretched to 0..255.\n"
          "  side                 16   24   32   64\n"
          "  paddle, pixels        2    2    2    5\n"
          "  thickness           0.5  0.5  0.5    1\n"
          "  gap between paddles   1    2    2    2\n"
          "  between the tails     4    5    7   12\n"
          "  turns below          64   90   90   50 degrees\n"
          "  distracting paddles   4   11   20   22\n"
          "  marker's radius       1  1.5  1.5  2.5\n"
          "Sides 32 and 64 are LRA's. At 24 and 32 distractors are brighter than the long snakes\n"
          "(2 to 1.5), as there at 32. Stricter than the original in two points, so that the "
          "label\n"
          "is the picture's: the newest paddles of the two long snakes keep apart as well, and\n"
          "distractors keep off both tips. Some pictures can be read both ways where the long\n"
          "snakes meet: none of 5000 at side 16, one in 600 or fewer at 24 and 32.\n"
          "Inputs: tokens, 1 + grey level, so that black is no padding (LRA's tokens are the grey\n"
          "levels, and its models mask black); or values, (grey/255 - 0.104)/0.221.\n"
          "Label: 1 when the markers lie on one snake. Evidence: the pixels of the markers and of\n"
          "both long snakes.\n"
          "Slices: marker_distance (pixels), distractors (short snakes that found room).",
      .params = snakes::snake_params(
          {"side", 32, "16, 24, 32 or 64 pixels along an edge; the length is its square", 16, 64}),
      .presets = {{"lra", "Long Range Arena's, its hard level", {{"side", 32}, {"contour", 14}}},
                  {"lra-intermediate", "its intermediate level", {{"side", 32}, {"contour", 9}}},
                  {"lra-easy", "its easy level", {{"side", 32}, {"contour", 6}}},
                  {"standard", "length 576", {{"side", 24}, {"contour", 9}}},
                  {"small", "length 256", {{"side", 16}, {"contour", 6}}}},
      .make = make_task<snakes::SnakeTask>,
      .released = &data::pathfinder_png_format()};
}

}  // namespace attn::tasks
