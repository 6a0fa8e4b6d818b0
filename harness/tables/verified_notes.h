// The marks of figures by how the answers behind them were compared, and the notes that explain the
// marks.
#pragma once

#include <string>
#include <vector>

#include "harness/cell/row.h"

namespace attn {

// "~" where identities alone were compared, "?" where nothing could be; "" else.
std::string verified_mark(const Row& row);

// What the marks mean, of rows of speed or memory; and that rows of an earlier version were not
// compared at their own shape.
std::vector<std::string> verified_notes(const std::vector<const Row*>& rows);

}  // namespace attn
