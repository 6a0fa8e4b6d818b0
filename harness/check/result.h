// What one contract check found. In a namespace of its own, since float and double builds of the
// checks share it.
#pragma once

#include <string>
#include <vector>

namespace attn_check {

enum class Outcome { passed, failed, skipped };
enum class Level {
  quick,
  full
};  // quick: what `run` asks before it publishes, under a second a variant; full: everything

struct Result {
  std::string subject;  // "linformer[rank=64]", "listops"
  std::string name;     // "causality", "gradients (double)"
  Outcome outcome = Outcome::passed;
  std::string detail;  // the measured figure against its bound, or the reason for skipping
};

}  // namespace attn_check
