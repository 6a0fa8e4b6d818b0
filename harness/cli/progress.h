// The progress of a sweep on stderr. On a terminal one line is rewritten, and each phase leaves a
// line behind. Elsewhere a phase begins with a line, and a long one says every half a minute how
// far it is. Either way a cell that fails is named; with `verbose` every cell is.
#pragma once

#include <chrono>
#include <string>

#include "harness/run/run.h"

namespace attn::cli {

class ProgressLine {
 public:
  enum class Kind { none, phases, rewritten };
  ProgressLine(Kind kind, bool verbose, bool color)
      : kind_(kind), verbose_(verbose), color_(color) {}
  ~ProgressLine();
  void show(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;
  void begin(const Progress& progress);
  void end();
  void name_cell(const Progress& progress);
  void say(const std::string& line);  // a line that stays

  Kind kind_;
  bool verbose_, color_;
  bool open_ = false;  // a rewritten line stands without its newline
  std::string phase_;
  size_t phase_total_ = 0;
  Clock::time_point phase_start_, said_;
};

}  // namespace attn::cli
