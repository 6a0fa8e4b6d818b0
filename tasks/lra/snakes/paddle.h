// Paddles, the dashes of a snake: settings, and tables of all strokes, masks and turns. Linsley et
// al. 2018, arXiv:1805.08315. A table has 360 + 2π·(length + margin) headings.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/lra/snakes/heading.h"
#include "tasks/lra/snakes/raster.h"

namespace attn::snakes {

// Lengths in pixels.
struct Settings {
  int side = 0;
  int padding = 0;  // width of the border without snakes
  int contour = 0;  // paddles of a target snake
  int length = 0;   // of a paddle
  double thickness = 0;
  std::vector<double> margins{};  // half the gap between paddles; each picture draws one of them
  double clearance = 0;           // of masks, beyond the margin
  int seed_distance = 0;          // between the tails of the two target snakes
  int frame = 0;                  // width of the border where the first snake does not start
  double continuity = 0;          // 1: turns up to a right angle; 2: up to half a right angle
  int distractors = 0, distractor_contour = 0;
  double contrast = 0, distractor_contrast = 0;
  double marker_radius = 0;
};

// A paddle on the grid. `tail` and `head` are its ends in the order of growth.
struct Paddle {
  double tail_y = 0, tail_x = 0, head_y = 0, head_x = 0;
  Offset anchor{};    // the pixel where its stamps are placed
  int heading = 0;    // index in the tables
  bool seed = false;  // drawn from tail to head; else from head to tail
};

// Tables for one margin. Headings 0..359 are whole degrees, the others belong to candidates().
class Paddles {
 public:
  Paddles(const Settings& settings, double margin);

  struct Stroke {
    Stamp line;                // grey, from the anchor to the other end
    Stamp mask;                // the line and its margin
    std::vector<Offset> full;  // where the mask is white
    Offset far{};              // the other end, in half pixels
  };
  struct Candidate {
    Offset head{};  // relative to the pivot
    int heading = 0;
  };

  double margin() const { return margin_; }
  Heading heading(int index) const { return headings_[static_cast<size_t>(index)]; }
  const Stroke& stroke(const Paddle& p) const {
    return (p.seed ? forward_
                   : backward_)[static_cast<size_t>(p.seed ? p.heading : p.heading - 360)];
  }
  const std::vector<Candidate>& candidates() const { return candidates_; }
  double weight(int from, size_t candidate) const {  // of the turn to the candidate
    return weights_[static_cast<size_t>(from) * candidates_.size() + candidate];
  }
  const std::vector<Offset>& around() const { return around_; }  // a disc of the margin's radius

  Paddle seed(Offset tail, int degrees) const;
  Paddle extension(Offset head, int heading) const;

 private:
  double margin_;
  std::vector<Heading> headings_;
  std::vector<Stroke> forward_, backward_;  // indexed by degree; by candidate
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;  // [headings, candidates]
  std::vector<Offset> around_;
};

}  // namespace attn::snakes
