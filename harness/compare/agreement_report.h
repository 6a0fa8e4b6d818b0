// What `attnbench fit` prints of tasks that order variants alike: a table, and flat objects for
// json and csv.
#pragma once

#include <vector>

#include "harness/compare/agreement.h"
#include "harness/tables/table.h"

namespace attn {

// A line for each pair of tasks that has a tau; the notes name the others and what was left out.
// Empty where `agreements` is.
std::vector<Table> agreement_tables(const Agreements& agreements);
// Of all pairs, and one with its reason for all that was left out.
std::vector<Json> agreement_lines(const Agreements& agreements);

}  // namespace attn
