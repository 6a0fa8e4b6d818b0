// The result of one check. The namespace attn_check is common to the float and the double build.
#pragma once

#include <string>
#include <vector>

namespace attn_check {

enum class Outcome { passed, failed, skipped };
enum class Level {
  quick,
  full
};  // quick: the checks of `run`, under a second per variant; full: all checks

struct Result {
  std::string subject;  // "linformer[rank=64]", "listops"
  std::string name;     // "causality", "gradients (double)"
  Outcome outcome = Outcome::passed;
  std::string detail;  // the measured value and its bound, or the reason for skipping
};

}  // namespace attn_check
