// Which keys a query sees, and how the (query, key) plane is cut for tiled attention. Causal,
// window and padding masks leave each query an interval of keys that only moves right from query to
// query; a block pattern leaves some blocks of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace attn {

// A list of key blocks for each query block, the same in every head or one list a head: block `b`
// of queries (rows b·size and on) sees the keys of blocks keys[begin[b]] to keys[begin[b + 1] - 1],
// ascending; with several heads, head h begins at entry h·query_blocks of `begin`.
struct BlockPattern {
  int64_t size = 64;  // queries of a query block, keys of a key block
  std::vector<int64_t> begin;
  std::vector<int64_t> keys;
};

struct Span {
  int64_t begin = 0, end = 0;
};

struct Band {
  int64_t q_len = 0;
  int64_t kv_len = 0;
  int64_t length = 0;  // keys from here on are padding: never read
  int64_t left = -1;   // keys seen before the query's own position; -1: all
  int64_t right = -1;  // and after it; 0 is causal; -1: all

  // Query i sits at key position i + kv_len - q_len: the two sequences are aligned at the end.
  int64_t begin(int64_t i) const {
    return left < 0 ? 0 : std::clamp<int64_t>(i + kv_len - q_len - left, 0, length);
  }
  int64_t end(int64_t i) const {
    return right < 0 ? length : std::clamp<int64_t>(i + kv_len - q_len + right + 1, 0, length);
  }
  Span of_rows(int64_t first, int64_t last) const {  // keys that some of [first, last) see
    return {begin(first), std::max(begin(first), end(last - 1))};
  }
};

// Queries cut into tiles that never cross a block of a pattern. `rows` of a tile share packed keys:
// more rows, less packing; their queries and outputs should stay in a second-level cache.
struct QueryTiles {
  int64_t q_len = 0, unit = 0, rows = 0, each = 0;  // a unit of queries is cut into `each` tiles

  // An even number of tiles a unit, so that two threads share one head evenly, of at most `most`
  // rows; whole strips.
  QueryTiles(int64_t length, const BlockPattern* pattern, int64_t most, int64_t strip)
      : q_len(length), unit(pattern ? pattern->size : std::max<int64_t>(1, length)) {
    const int64_t pieces = 2 * ((unit + 2 * most - 1) / (2 * most));
    rows = ((unit + pieces - 1) / pieces + strip - 1) / strip * strip;
    each = (unit + rows - 1) / rows;
  }
  int64_t count() const { return (q_len + unit - 1) / unit * each; }
  Span operator[](int64_t tile) const {  // its queries, none at the end of an odd last unit
    const int64_t first = tile / each * unit + tile % each * rows;
    return {std::min(first, q_len), std::min({first + rows, (tile / each + 1) * unit, q_len})};
  }
};

// Calls visit(span) for the runs of keys that some of the queries see: one, or what a pattern
// leaves of it, in ascending order. The queries belong to one block of the pattern.
template <class Visit>
void visit_spans(const Band& band, const BlockPattern* pattern, int64_t head, Span queries,
                 Visit&& visit) {
  if (queries.begin >= queries.end) return;
  const Span all = band.of_rows(queries.begin, queries.end);
  if (!pattern) {
    if (all.begin < all.end) visit(all);
    return;
  }
  const int64_t blocks = (band.q_len + pattern->size - 1) / pattern->size;
  const bool shared = static_cast<int64_t>(pattern->begin.size()) == blocks + 1;
  const auto first =
      static_cast<size_t>((shared ? 0 : head * blocks) + queries.begin / pattern->size);
  Span run;
  for (int64_t at = pattern->begin[first]; at < pattern->begin[first + 1]; ++at) {
    const int64_t key = pattern->keys[static_cast<size_t>(at)] * pattern->size;
    const Span block{std::max(all.begin, key), std::min(all.end, key + pattern->size)};
    if (block.begin >= block.end) continue;
    if (block.begin != run.end) {
      if (run.begin < run.end) visit(run);
      run = block;
    }
    run.end = block.end;
  }
  if (run.begin < run.end) visit(run);
}

// The pairs that will be multiplied: strips of so many queries see whatever one of them sees.
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
