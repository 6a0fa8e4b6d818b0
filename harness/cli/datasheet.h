// The datasheet of a task: what is asked, how long, how balanced, how far apart, and what scores
// without attention. The one source of `info TASK` and of results/tasks.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/store/rows.h"
#include "tasks/api/task.h"

namespace attn::cli {

struct Datasheet {
  const TaskInfo* info = nullptr;
  Params params;
  TaskShape shape;
  double chance = 0;
  int64_t examples = 0;               // of the test split, behind all figures below
  int64_t fitted = 0;                 // of the train split, behind the shortcuts
  int64_t shortest = 0, longest = 0;  // sequences
  double mean_length = 0;
  std::map<int32_t, int64_t> labels;  // scored ones, of the test split
  struct {
    double mean = 0, variance = 0;
  } answers;  // of real ones
  // Distances of the test split's labels by powers of two: [0] counts 0, [1] 1, [2] 2..3, ...
  std::vector<int64_t> distances;  // empty: unknown
  // Generated: first draws of the test split whose input also is one of the first draws of the
  // training split; they are drawn again. Read: inputs left out.
  int64_t duplicates = 0;
  std::vector<Shortcut> shortcuts;
  std::string drawn;  // the first training example
};

// Seed 0. The number of examples is 1000, or fewer where sequences are long.
Datasheet datasheet_of(const TaskInfo& info, const std::map<std::string, ParamValue>& given);

std::string plain_text_of(const Datasheet& sheet);
std::string markdown_of(const Datasheet& sheet);  // a section of results/tasks.md
Json json_of(const Datasheet& sheet);
// results/tasks.md: every task at its preset `standard`, else its defaults.
std::string tasks_page();

}  // namespace attn::cli
