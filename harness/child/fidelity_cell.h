// What a child process does for fidelity cells: inputs drawn at random, or captured from a model,
// which one process of a sweep trains and the others read; see one_cell.h. Private to
// harness/child.
#pragma once

#include "harness/cell/request.h"

namespace attn {

CellResult fidelity(const Request& request);

}  // namespace attn
