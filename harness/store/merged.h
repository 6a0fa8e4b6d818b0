// Several rows files as one: parts of a sweep, seeds, machines.
#pragma once

#include <string>
#include <vector>

#include "harness/store/rows.h"

namespace attn {

struct NamedRows {
  std::string path;  // for messages
  std::vector<Json> lines;
};

// Which row stands where a machine and build measured a cell in two runs.
enum class Keep { none, first, last };

struct MergedRows {
  std::vector<Json> lines;  // run by run: its run lines, then its cells; unchanged but for `merged`
  size_t runs = 0, cells = 0;
  size_t doubles = 0;   // rows that were there before, to the last figure
  size_t replaced = 0;  // rows that `keep` left out
};

// Rows are as they were measured. Error with both places where two rows of a run and cell differ,
// or, unless `keep` says which one stands, where two runs on one machine and build hold a cell: one
// measured it again. Runs on other machines or builds stand beside each other.
MergedRows merge_rows(const std::vector<NamedRows>& files, Keep keep);

}  // namespace attn
