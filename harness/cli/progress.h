// The progress of a sweep on stderr: one line that is rewritten on a terminal, else a plain line a
// cell.
#pragma once

#include <string>

#include "harness/sweep/sweep.h"

namespace attn::cli {

class ProgressLine {
 public:
  enum class Kind { none, lines, rewritten };
  ProgressLine(Kind kind, bool color) : kind_(kind), color_(color) {}
  ~ProgressLine();
  void show(const Progress& progress);

 private:
  Kind kind_;
  bool color_;
  bool open_ = false;  // a rewritten line stands without its newline
};

std::string cell_text(const Json& row);  // "speed linformer[rank=64] length 1024, …"

}  // namespace attn::cli
