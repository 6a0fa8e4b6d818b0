// Random neighbours of each position; see random_graph.h. Floyd's algorithm draws them (Bentley and
// Floyd 1987, CACM 30(9)): as many draws as neighbours.
#include "variants/patterns/random_graph.h"

#include <algorithm>

#include "variants/softmax/softmax.h"

namespace attn {
namespace {

// Ascending.
std::vector<int32_t> before(int64_t position, int64_t degree, uint64_t seed) {
  std::vector<int32_t> found;
  if (position <= degree) {
    for (int64_t j = 0; j < position; ++j) found.push_back(static_cast<int32_t>(j));
    return found;
  }
  Rng random = rng(seed, "graph", static_cast<uint64_t>(position));
  for (int64_t candidate = position - degree; candidate < position; ++candidate) {
    const auto drawn = static_cast<int32_t>(random.below(static_cast<uint64_t>(candidate + 1)));
    const auto at = std::lower_bound(found.begin(), found.end(), drawn);
    if (at == found.end() || *at != drawn)
      found.insert(at, drawn);
    else
      found.push_back(
          static_cast<int32_t>(candidate));  // larger than all that could be drawn so far
  }
  return found;
}

// Itself and the ones before.
std::vector<Slots> slots_of(int64_t position, int64_t degree, uint64_t seed) {
  std::vector<int32_t> seen = before(position, degree, seed);
  seen.push_back(static_cast<int32_t>(position));
  std::vector<Slots> slots;
  for (const int32_t j : seen)
    if (!slots.empty() && slots.back().end == j)
      ++slots.back().end;
    else
      slots.push_back({j, j + 1});
  return slots;
}

}  // namespace

CacheLayout graph_cache(int64_t capacity, int64_t degree, uint64_t seed) {
  return {.slots = capacity,
          .visible_slots = [=](int64_t, int64_t at) { return slots_of(at, degree, seed); },
          .by_head = false};
}

Edges random_graph(const AttentionShape& shape, int64_t degree, uint64_t seed) {
  const int64_t n = shape.kv_len, shift = n - shape.q_len;
  std::vector<std::vector<int32_t>> seen(static_cast<size_t>(n));
  for (int64_t p = 0; p < n; ++p) {
    auto& own = seen[static_cast<size_t>(p)];
    own = before(p, degree, seed);
    if (!shape.causal)  // those after p append themselves later, in ascending order
      for (const int32_t j : own) seen[static_cast<size_t>(j)].push_back(static_cast<int32_t>(p));
    own.push_back(static_cast<int32_t>(p));
  }
  Edges edges;
  for (int64_t r = 0; r < shape.batch * shape.q_len; ++r) {
    edges.first.push_back(std::ssize(edges.keys));
    const int64_t p = r % shape.q_len + shift;
    if (p < 0) {
      for (int32_t j = 0; j < (shape.causal ? 0 : std::min(degree, n)); ++j)
        edges.keys.push_back(j);
      continue;
    }
    const auto& own = seen[static_cast<size_t>(p)];
    edges.keys.insert(edges.keys.end(), own.begin(), own.end());
  }
  edges.first.push_back(std::ssize(edges.keys));
  return edges;
}

Cost graph_cost(const AttentionShape& shape, int64_t degree, uint64_t seed) {
  AttentionShape one = shape;
  one.batch = 1;
  return edge_cost(shape, random_graph(one, degree, seed));
}

}  // namespace attn
