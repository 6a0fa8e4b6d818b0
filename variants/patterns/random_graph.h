// A random graph over positions that does not depend on the length: position p is joined to itself
// and to min(degree, p) others before it, drawn without repetition. Each prefix is the graph of
// that length. Time and memory O(n·degree).
#pragma once

#include <cstdint>

#include "variants/api/cost.h"
#include "variants/api/mask.h"
#include "variants/patterns/pattern_decoder.h"

namespace attn {

// Decoding along it: every position is kept, and read by those after it that are joined to it.
CacheLayout graph_cache(int64_t capacity, int64_t degree, uint64_t seed);

// Who sees whom, the same in each of `shape.batch` entries: causal, itself and those before; else
// those after too that are joined to it. Query i sits at key position i + kv_len - q_len;
// one before the first key sees the first `degree` keys, or, causal, none.
Edges random_graph(const AttentionShape& shape, int64_t degree, uint64_t seed);

// Of attention along it; batch entries share their edges.
Cost graph_cost(const AttentionShape& shape, int64_t degree, uint64_t seed);

}  // namespace attn
