// Scores by panels of keys; see key_chooser.h.
#include "variants/selection/key_chooser.h"

#include <algorithm>

#include "core/base/workspace.h"
#include "core/simd/fetch.h"
#include "variants/selection/top_strip.h"

namespace attn {

KeyChooser::Room::Room(const Indexer& indexer, int64_t keep) {
  WorkspaceParts parts;
  const int64_t heads = indexer.heads(), dim = indexer.dim();
  scores = parts.take(kPanel);
  products = parts.take(heads * kPanel);
  list = parts.take(TopList::reals(keep));
  queries = parts.take(heads * dim);
  weights = parts.take(heads);
  key = parts.take(dim);
  total = parts.total();
}

KeyChooser::KeyChooser(int64_t batch, int64_t positions, int64_t keep, const Indexer& indexer)
    : keep_(keep),
      indexer_(indexer),
      keys_(batch, positions, indexer.dim(), 0),
      room_(indexer, keep),
      work_({batch, room_.total}) {}

void KeyChooser::put(int64_t b, int64_t at, const real* k, int64_t apart, int64_t group) const {
  real* const key = work_of(b) + room_.key;
  indexer_.make_key(1, k, apart, group, key);
  keys_.put(b, at, key, key);  // its values have no channel
}

int64_t KeyChooser::choose(int64_t b, int64_t seen, const real* q, int64_t dim,
                           int32_t* places) const {
  real* const work = work_of(b);
  const int64_t width = indexer_.dim(), each = indexer_.heads();
  real *const queries = work + room_.queries, *const weights = work + room_.weights,
              *const products = work + room_.products, *const scores = work + room_.scores;
  TopList list = TopList::in(work + room_.list, keep_);
  indexer_.make_query(0, 1, q, dim, queries, weights);
  for (int64_t first = 0; first < seen; first += kPanel) {  // the last panel is narrower
    const int64_t cols = std::min(kPanel, seen - first);
    const real* const panel = keys_.panel(b, first);
    product(each, cols, width, {queries, width},
            {panel, keys_.panel_width(first), kPanel, ahead_of(panel)}, products, kPanel);
    index_scores(cols, each, products, kPanel, weights, true, scores);
    add_to_top(cols, scores, first, list);
  }
  return take_top(list, places);
}

}  // namespace attn
