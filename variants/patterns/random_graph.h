// A random graph over positions. Position p has edges to itself and to min(degree, p) earlier
// positions, drawn without repetition. The graph of a prefix is the prefix of the graph. Time and
// memory O(n·degree).
#pragma once

#include <cstdint>

#include "variants/api/cost.h"
#include "variants/api/mask.h"
#include "variants/patterns/pattern_decoder.h"

namespace attn {

// For decoding along the graph: the cache has all positions.
CacheLayout graph_cache(int64_t capacity, int64_t degree, uint64_t seed);

// The edges, the same for all `shape.batch` entries. A query sees its own position and its earlier
// neighbours; not causal, also the later ones. Query i is at key position i + kv_len - q_len. A
// query before the first key sees the first `degree` keys; causal, it sees none.
Edges random_graph(const AttentionShape& shape, int64_t degree, uint64_t seed);

// The cost of attention along the graph; batch entries share their edges.
Cost graph_cost(const AttentionShape& shape, int64_t degree, uint64_t seed);

}  // namespace attn
