// The visible keys of each query, and the division of queries into tiles. Causal, window and
// padding masks leave each query a span of keys, whose ends never move left from one query to the
// next. Global keys are added to the span, RemovedKeys are removed from it, and a block pattern
// selects blocks of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/recycled.h"
#include "core/base/span.h"

namespace attn {

// A list of indices that does not call malloc in a loop that has reached its steady state.
using IndexList = std::vector<int64_t, Recycled<int64_t>>;

// A list of visible key blocks for each block of queries. Block b of queries sees the key blocks
// keys[begin[b]] to keys[begin[b + 1] - 1], ascending. There is one set of lists for all heads, or
// one for each head, or one for each batch entry and head. Set h starts at begin[h·query_blocks].
struct BlockPattern {
  int64_t size = 64;  // queries or keys of a block
  IndexList begin;
  IndexList keys;
};

// Keys that are removed from the span of a query. Unit u of `rows` queries does not see the keys
// u·keys to (u + 1)·keys - 1. keys = 0: none is removed. seen_after = false: the later keys are
// removed too. The first query is number `before` of its unit, or of a later one.
struct RemovedKeys {
  int64_t rows = 1, keys = 0;
  bool seen_after = true;
  int64_t before = 0;

  Span of(int64_t i) const {
    const int64_t unit = (i + before) / rows;
    return {unit * keys, (unit + 1) * keys};
  }
};

// The mask of one head.
struct Band {
  int64_t q_len = 0;
  int64_t kv_len = 0;
  int64_t length = 0;  // keys from this one on are padding and are never read
  int64_t left = -1;   // keys visible before the query's position; -1: all
  int64_t right = -1;  // keys visible after it; -1: all
  bool causal = false;
  // Global tokens: every query sees the keys of the first `global` positions (causal: up to its
  // own), and the queries of these positions see every key.
  int64_t global = 0;
  RemovedKeys removed = {};

  // Query i sits at key position i + kv_len - q_len: the two sequences are aligned at the end.
  int64_t position(int64_t i) const { return i + kv_len - q_len; }
  int64_t limit(int64_t i) const {
    return causal ? std::clamp<int64_t>(position(i) + 1, 0, length) : length;
  }
  bool is_global(int64_t i) const { return global > 0 && position(i) < global; }
  Span global_keys(int64_t i) const { return {0, std::min(global, limit(i))}; }
  // The span of query i is [begin(i), end(i)). It does not include the global keys, but still
  // includes the removed ones.
  int64_t begin(int64_t i) const {
    return left < 0 || is_global(i) ? 0 : std::clamp<int64_t>(position(i) - left, 0, length);
  }
  int64_t end(int64_t i) const {
    const int64_t last = limit(i);
    if (!removed.seen_after) return std::min(last, removed.of(i).begin);
    return right < 0 || is_global(i) ? last : std::clamp<int64_t>(position(i) + right + 1, 0, last);
  }
  Span of_rows(int64_t first, int64_t last) const {  // from the first to the last visible key
    return {begin(first), std::max({begin(first), end(first), end(last - 1)})};
  }
  // Whether each of the rows sees each of the keys; false may also mean that this is not known.
  bool covers(Span rows, Span keys) const {
    const int64_t last = rows.end - 1;
    if (removed.keys > 0 && removed.of(rows.begin).begin < keys.end &&
        removed.of(last).end > keys.begin)
      return false;
    if (keys.end <= global_keys(rows.begin).end) return true;
    // Ends ascend, except from the last global query to the first other one.
    const int64_t other = std::clamp(global - position(0), rows.begin, last);
    return begin(last) <= keys.begin && std::min(end(rows.begin), end(other)) >= keys.end;
  }
};

// The division of queries into tiles. A tile is inside one block of a pattern. The rows of a tile
// share packed keys: tall tiles need less packing, but their queries and outputs should fit in the
// second-level cache.
struct QueryTiles {
  // Queries of a unit that is not halved: packing the keys twice would take a tenth of the time.
  static constexpr int64_t kShort = 96;

  int64_t q_len = 0, strip = 1;
  int64_t unit = 0, strips = 0, per_unit = 0;  // queries of a unit, its strips and its tiles
  int64_t rows = 0;                            // of the largest tile

  // Tiles have at most max_rows rows, rounded up to a multiple of `strip`. A long unit gets an even
  // number of tiles, whose sizes differ by a strip at most, so that two threads share one head
  // evenly; a pattern has many units.
  QueryTiles(int64_t length, const BlockPattern* pattern, int64_t max_rows, int64_t strip_rows)
      : q_len(length),
        strip(strip_rows),
        unit(pattern ? pattern->size : std::max<int64_t>(1, length)),
        strips((unit + strip - 1) / strip) {
    const int64_t even = pattern || unit <= kShort ? 1 : 2;
    per_unit = std::min(strips, even * ((unit + even * max_rows - 1) / (even * max_rows)));
    rows = (strips + per_unit - 1) / per_unit * strip;
  }
  int64_t count() const { return (q_len + unit - 1) / unit * per_unit; }
  Span operator[](int64_t tile) const {  // its queries; may be empty in the last unit
    const int64_t start = tile / per_unit * unit, end = std::min(start + unit, q_len);
    const auto begin = [&](int64_t t) {  // the first tiles have the strips that are left over
      return std::min(start + (strips / per_unit * t + std::min(t, strips % per_unit)) * strip,
                      end);
    };
    return {begin(tile % per_unit), begin(tile % per_unit + 1)};
  }
};

// Calls visit(span) for each run of keys that some of the queries see, in ascending order: the
// global keys and the span, or the blocks of the span that a pattern selects. The queries belong to
// one block of the pattern.
template <class Visit>
void visit_spans(const Band& band, const BlockPattern* pattern, int64_t head, Span queries,
                 Visit&& visit) {
  if (queries.begin >= queries.end) return;
  const Span all = band.of_rows(queries.begin, queries.end);
  Span run;
  const auto add = [&](Span next) {
    if (next.begin >= next.end) return;
    if (next.begin > run.end || run.begin >= run.end) {
      if (run.begin < run.end) visit(run);
      run = next;
    }
    run.end = std::max(run.end, next.end);
  };
  if (pattern) {
    const int64_t blocks = (band.q_len + pattern->size - 1) / pattern->size;
    const int64_t sets = (static_cast<int64_t>(pattern->begin.size()) - 1) / blocks;
    const auto list = static_cast<size_t>(head % sets * blocks + queries.begin / pattern->size);
    for (int64_t at = pattern->begin[list]; at < pattern->begin[list + 1]; ++at) {
      const int64_t key = pattern->keys[static_cast<size_t>(at)] * pattern->size;
      add({std::max(all.begin, key), std::min(all.end, key + pattern->size)});
    }
  } else {
    add(band.global_keys(queries.end - 1));
    add(all);
  }
  if (run.begin < run.end) visit(run);
}

// The number of pairs that a kernel multiplies: all queries of a strip with the visible keys of any
// of them.
inline double executed_pairs(const Band& band, const BlockPattern* pattern, int64_t head,
                             const QueryTiles& tiles, int64_t strip) {
  double pairs = 0;
  for (int64_t t = 0; t < tiles.count(); ++t)
    for (int64_t i = tiles[t].begin; i < tiles[t].end; i += strip) {
      const Span rows{i, std::min(i + strip, tiles[t].end)};
      visit_spans(band, pattern, head, rows, [&](Span keys) {
        pairs += static_cast<double>((rows.end - rows.begin) * (keys.end - keys.begin));
      });
    }
  return pairs;
}

}  // namespace attn
