// The keys that an indexer of all heads chooses, one position after the other: a cache of its keys
// of each sequence, and the choice among them by the same products as a forward makes, so that both
// choose alike. A choice among n keys costs 2·n·index_heads·index_dim FLOPs.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"
#include "variants/selection/indexer.h"
#include "variants/softmax/softmax.h"

namespace attn {

class KeyChooser {
 public:
  // Of `batch` sequences with `positions` keys each, of which `keep` are chosen.
  KeyChooser(int64_t batch, int64_t positions, int64_t keep, const Indexer& indexer);

  // k: of the first head of sequence b; those of the others `apart` numbers away, and `group` query
  // heads share one.
  void put(int64_t b, int64_t at, const real* k, int64_t apart, int64_t group) const;
  // Among the first `seen` keys, for queries [heads, dim] of sequence b: writes min(keep, seen)
  // places, ascending, and returns how many.
  int64_t choose(int64_t b, int64_t seen, const real* q, int64_t dim, int32_t* places) const;

  const Indexer& indexer() const { return indexer_; }
  int64_t bytes() const { return keys_.bytes(); }

 private:
  struct Room {  // of a sequence: offsets into its workspace
    int64_t scores, products, list, queries, weights, key, total;
    Room(const Indexer& indexer, int64_t keep);
  };
  real* work_of(int64_t b) const { return work_.data() + b * room_.total; }

  int64_t keep_;
  Indexer indexer_;
  PanelCache keys_;  // [batch, positions, index_dim]
  Room room_;
  Tensor work_;  // [batch, room]
};

}  // namespace attn
