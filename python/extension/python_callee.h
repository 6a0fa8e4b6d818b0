// A function of Python as a Callee: the library calls the function, and what it returned for
// gradients. Of the module's sources alone: the interpreter lock is held throughout.
#pragma once

#include <nanobind/nanobind.h>

#include "python/extension/called.h"

namespace attn_python {

// make(heads, head_dim, max_len, causal, seed, in_double, params) -> an object with weights() ->
// [(name, array, learned)] and call(q, k, v, causal, kv_lengths, weights, gradients) -> (output,
// backward or None), where backward(grad_output) -> [array or None]. The caller keeps `make` and
// `interrupted`, which Ctrl-C sets: a check takes every exception for a fault of the function.
MakeCallee calls_to(nanobind::handle make, bool& interrupted);

}  // namespace attn_python
