// A random graph over positions that does not depend on the length: position p is joined to itself
// and to min(degree, p) others before it, drawn without repetition. Each prefix is the graph of
// that length. Time and memory O(n·degree).
#pragma once

#include <cstdint>

#include "variants/attention.h"

namespace attn {

// Who sees whom, the same in each of `shape.batch` entries: causal, itself and those before; else
// those after too that are joined to it. Query i sits at key position i + kv_len - q_len;
// one before the first key sees the first `degree` keys, or, causal, none.
Edges random_graph(const AttentionShape& shape, int64_t degree, uint64_t seed);

}  // namespace attn
