// The work of a child process: a request is answered by a whole reply in JSON (see cell/codec.h).
#pragma once

#include "harness/cell/request.h"

namespace attn {

// A speed cell gives a Visit, which the parent merges with others; another cell a CellResult.
Json answer(const Request& request);

// `attnbench cell`: reads a request as JSON from stdin, writes the reply as JSON to stdout. Returns
// the exit code.
int run_cell_process();

}  // namespace attn
