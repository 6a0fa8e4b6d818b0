// A comparison as people and programs read it: tables, JSON and JUnit's XML.
#pragma once

#include <string>
#include <vector>

#include "harness/compare/compare.h"
#include "harness/tables/table.h"

namespace attn {

// A table a measure, what changed first, and one of counts, whose notes say what was left out.
std::vector<Table> comparison_tables(const Comparison& comparison);
// {"threshold":…, "pairs":[…], "left_out":[…], "only_in_old":…, "only_in_new":…, "notes":[…]}.
Json comparison_json(const Comparison& comparison);
// An object a pair.
std::vector<Json> pairs_json(const Comparison& comparison);
// A test case a pair: a regression is a failure, a pair that was left out is skipped.
std::string junit_xml(const Comparison& comparison);
// "time: 2 slower, 1 faster, 50 same, 7 undecided" and the like, in one line.
std::string summary_line(const Comparison& comparison);

}  // namespace attn
