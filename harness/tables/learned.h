// Whether a setting can be learned. The control of a task is exact attention, or the variant that
// the task names as its solver. A score in a setting that the control has not learned says nothing
// of a variant, and no table holds it.
#pragma once

#include <string>
#include <vector>

#include "harness/tables/seeds.h"

namespace attn {

// Share of the way from the best shortcut to a perfect score that the control must come. Of bits
// nobody knows a perfect score, and the bar is the best shortcut.
inline constexpr double kBarShare = 0.5;
// The score that a training of the row's setting must reach to have learned it.
double bar_of(const AccuracyMetrics& metrics);

// A task with the settings of training that all variants have in common.
struct TaskSetting {
  enum class Learned { yes, no, unknown };  // unknown: no row has its control
  Learned learned = Learned::unknown;
  std::string control;            // the variant
  size_t seeds = 0, reached = 0;  // of the control with the parameters that did best
  double mean = 0, bar = 0;       // over these seeds; NaN where none has a score
};
// Learned in every seed by the control with one set of parameters. What a shortcut solves, and a
// task without rows that are ok, is not judged: yes.
TaskSetting judged_setting(const Seeds& rows);

// "left out: mqar: full scores 0.260, and reached the bar of 0.625 in 0 of 3 seeds", for the notes
// of a table.
std::string left_out_note(const std::string& task, const TaskSetting& setting);

// Behind the name of a task whose control has no row.
inline constexpr const char* kNoControlSign = " ¶";
std::string no_control_note(const std::string& control);

}  // namespace attn
