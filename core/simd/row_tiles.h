// Loops over tiles of activation rows, dense or split into heads. A tile and its results fit in the
// second-level cache. Each worker has its own workspace and partial sums.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/simd/product.h"
#include "core/tensor/tensor.h"

namespace attn {

// `batch` times `len` rows of `width` numbers: dense (heads = 1) or [batch, heads, len,
// width/heads].
struct RowLayout {
  int64_t batch = 1, len = 0, width = 0, heads = 1;
};

struct RowTile {
  int64_t entry, first, count;  // rows [first, first + count) of a batch entry
  int64_t row;                  // index of the first row among all rows
};

// Copies or adds `count` rows of `dim` numbers between two strides. The usual head widths are
// template arguments: for 64 bytes, a call of memmove takes longer than the copy.
template <bool kAdd, int64_t kDim>
void move_rows_of(real* to, int64_t to_row, const real* from, int64_t from_row, int64_t count,
                  int64_t given) {
  const int64_t dim = kDim > 0 ? kDim : given;
  for (int64_t i = 0; i < count; ++i, to += to_row, from += from_row) {
    if constexpr (kAdd)
      for (int64_t j = 0; j < dim; ++j) to[j] += from[j];
    else
      std::memcpy(to, from, static_cast<size_t>(dim) * sizeof(real));
  }
}
template <bool kAdd>
void move_rows(real* to, int64_t to_row, const real* from, int64_t from_row, int64_t count,
               int64_t dim) {
  if (dim == 16) return move_rows_of<kAdd, 16>(to, to_row, from, from_row, count, dim);
  if (dim == 32) return move_rows_of<kAdd, 32>(to, to_row, from, from_row, count, dim);
  if (dim == 64) return move_rows_of<kAdd, 64>(to, to_row, from, from_row, count, dim);
  move_rows_of<kAdd, 0>(to, to_row, from, from_row, count, dim);
}

// The first row of head h in a tile; rows have width/heads numbers and are contiguous.
template <class Number>
Number* head_rows(const RowLayout& rows, Number* data, const RowTile& tile, int64_t h) {
  return data + ((tile.entry * rows.heads + h) * rows.len + tile.first) * (rows.width / rows.heads);
}

// The rows of a tile as dense rows: in place, or copied to `work` (count·width) if split into
// heads.
inline const real* gather_rows(const RowLayout& rows, const real* data, const RowTile& tile,
                               real* work) {
  if (rows.heads == 1) return data + tile.row * rows.width;
  const int64_t dim = rows.width / rows.heads;
  for (int64_t h = 0; h < rows.heads; ++h)
    move_rows<false>(work + h * dim, rows.width, head_rows(rows, data, tile, h), dim, tile.count,
                     dim);
  return work;
}

// Copies dense rows `work` to rows split into heads, or adds them if `accumulate`.
inline void scatter_rows(const RowLayout& rows, real* data, const RowTile& tile, const real* work,
                         bool accumulate) {
  const int64_t dim = rows.width / rows.heads;
  for (int64_t h = 0; h < rows.heads; ++h) {
    real* const to = head_rows(rows, data, tile, h);
    if (accumulate)
      move_rows<true>(to, dim, work + h * dim, rows.width, tile.count, dim);
    else
      move_rows<false>(to, dim, work + h * dim, rows.width, tile.count, dim);
  }
}

// The division of `batch` times `len` rows into tiles of up to `height` rows.
struct TilePlan {
  int64_t batch, len, height, workers;
};

// Uses as many threads as have enough work, and tiles of at most max_height rows. Where tiles are
// few, every worker gets the same number; heights are multiples of kTileRows.
inline TilePlan plan_tiles(int64_t batch, int64_t len, int64_t max_height, double multiply_adds) {
  constexpr double kWorth = 1 << 18;  // minimum multiply-adds of a worker: about 5 µs
  constexpr int64_t kLeast = 48;  // minimum rows of a worker: fewer do not pay for its partial sums
  const auto parts = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
  const int64_t busy = static_cast<int64_t>(std::min(multiply_adds / kWorth, 1e6));
  TilePlan plan = {batch, len, max_height, 1};
  plan.workers = std::max<int64_t>(1, std::min({int64_t{threads()}, busy, batch * len / kLeast}));
  const int64_t tiles = batch * parts(len, max_height);
  constexpr int64_t kMany = 32;  // tiles of a worker beyond which one more does not matter
  if (tiles == 0 || tiles >= kMany * plan.workers) return plan;
  const int64_t each = parts(parts(tiles, plan.workers) * plan.workers, batch);  // of an entry
  plan.height = std::min(max_height, parts(parts(len, each), kTileRows) * kTileRows);
  return plan;
}

// Calls body(tile, worker) for all tiles. The assignment of tiles to workers is fixed.
template <class Body>
void over_row_tiles(const TilePlan& plan, const Body& body) {
  const int64_t each = (plan.len + plan.height - 1) / plan.height, tiles = plan.batch * each;
  parallel_for(plan.workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w)
      for (int64_t t = tiles * w / plan.workers; t < tiles * (w + 1) / plan.workers; ++t) {
        const int64_t entry = t / each, first = t % each * plan.height;
        body(RowTile{entry, first, std::min(plan.height, plan.len - first),
                     entry * plan.len + first},
             w);
      }
  });
}

// A sum over all workers. Worker 0 adds to `total`; the others add to their own partial sums, which
// finish() adds to `total` in order. If total is null, there is no sum.
class WorkerSums {
 public:
  WorkerSums(real* total, int64_t size, int64_t workers)
      : total_(total), size_(size), workers_(workers) {
    if (!total || workers == 1) return;
    const int64_t bytes = (workers - 1) * padded_reals(size) * static_cast<int64_t>(sizeof(real));
    partial_ = Block(static_cast<size_t>(bytes), Purpose::workspace);
  }
  // Sets the partial sum of a worker to 0; each worker must call it first, on its own thread.
  void clear(int64_t worker) const {
    if (total_ && worker > 0) std::fill_n(of(worker), size_, real(0));
  }
  real* of(int64_t worker) const {
    if (!total_ || worker == 0) return total_;
    return static_cast<real*>(partial_.data()) + (worker - 1) * padded_reals(size_);
  }
  void finish() const {
    if (!total_ || workers_ == 1) return;
    constexpr int64_t kFewestNumbersOfATask = 1 << 14;
    parallel_for(size_, kFewestNumbersOfATask, [&](int64_t begin, int64_t end) {
      for (int64_t w = 1; w < workers_; ++w) {
        const real* from = of(w);
        for (int64_t i = begin; i < end; ++i) total_[i] += from[i];
      }
    });
  }

 private:
  real* total_;
  int64_t size_, workers_;
  Block partial_;
};

}  // namespace attn
