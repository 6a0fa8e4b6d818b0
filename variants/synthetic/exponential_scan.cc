// Running sums of exponentials: a source at a time, with one exponential for each channel. Parallel
// over heads. See exponential_sums.h.
#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
#include "variants/synthetic/exponential_sums.h"
#include "variants/synthetic/exponential_tiles.h"

namespace attn {

void clear_sums(int64_t dim, real* state) {
  std::fill_n(state, dim, -kInfinity);
  std::fill_n(state + dim, 2 * dim, real(0));
}

void add_source(int64_t dim, const real* x, const real* a, const real* b, real bias, real* state,
                real* work) {
  real *const top = state, *const sum_a = state + dim, *const sum_b = state + 2 * dim;
  // Of the old sums and the new source, one has the larger exponent, and its factor is 1.
  for (int64_t c = 0; c < dim; ++c) work[c] = -std::abs(x[c] + bias - top[c]);
  exp_row(dim, work, 1, 0, work);
  ATTN_INDEPENDENT
  for (int64_t c = 0; c < dim; ++c) {
    const bool rises = x[c] + bias > top[c];
    const real keep = rises ? work[c] : real(1), weight = rises ? real(1) : work[c];
    sum_a[c] = keep * sum_a[c] + weight * a[c];
    sum_b[c] = keep * sum_b[c] + (b ? weight * b[c] : weight);
    top[c] = rises ? x[c] + bias : top[c];
  }
}

namespace exponential_detail {
namespace {

struct Scan {
  const ExponentialPairs& p;
  const SourceRows& from;
  const OnSums& finish;
  int64_t head;
  real* work;  // state [3·dim], tops and sums of a tile, what add_source() needs

  void add(int64_t j) const {
    const int64_t at = (head * p.len + j) * p.dim;
    add_source(p.dim, from.x + at, from.a + at, from.b ? from.b + at : nullptr, 0, work,
               sums() + ExponentialPairs::kTile * 2 * p.dim);
  }
  real* tops() const { return work + 3 * p.dim; }
  real* sums() const { return tops() + ExponentialPairs::kTile * p.dim; }
  void keep(int64_t r) const {
    std::copy_n(work, p.dim, tops() + r * p.dim);
    std::copy_n(work + p.dim, 2 * p.dim, sums() + r * 2 * p.dim);
  }
  void run() const {
    const Mark mark(Part::sums);
    const int64_t valid = p.valid(head / p.heads);
    const bool backwards = p.sees == ExponentialPairs::Sees::future;
    clear_sums(p.dim, work);
    for (int64_t j = 0; p.sees == ExponentialPairs::Sees::all && j < valid; ++j) add(j);
    for (int64_t t = 0; t < p.tiles(); ++t) {
      const int64_t tile = backwards ? p.tiles() - 1 - t : t,
                    first = tile * ExponentialPairs::kTile, count = p.rows(tile);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t r = backwards ? count - 1 - i : i;
        if (p.sees != ExponentialPairs::Sees::all && first + r < valid) add(first + r);
        keep(r);
      }
      finish({head, first, count, tops(), sums()}, sums() + ExponentialPairs::kTile * 2 * p.dim);
    }
    count_flops(static_cast<double>(kSourceFlops * p.dim * valid));
  }
};

}  // namespace

int64_t scan_reals(const ExponentialPairs& p) {
  return (3 + 3 * ExponentialPairs::kTile + 2) * p.dim;
}

void scan(const ExponentialPairs& p, const SourceRows& from, const OnSums& finish) {
  run_tasks(p.all_heads(), scan_reals(p), [&](int64_t head, real* work) {
    Scan{p, from, finish, head, work}.run();
  });
}

void merge(int64_t dim, int64_t rows, const real* top, const real* sums, real* to_top,
           real* to_sums, real* work) {
  real *const keep = work, *const weight = work + dim;
  for (int64_t c = 0; c < dim; ++c) {
    const real highest = std::max(to_top[c], top[c]);
    const real base = highest > -kInfinity ? highest : real(0);  // nothing beside nothing is 0
    keep[c] = to_top[c] - base, weight[c] = top[c] - base, to_top[c] = highest;
  }
  exp_row(2 * dim, work, 1, 0, work);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t half = 0; half < 2; ++half) {
      real* const to = to_sums + (2 * r + half) * dim;
      const real* const more = sums + (2 * r + half) * dim;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < dim; ++c) to[c] = keep[c] * to[c] + weight[c] * more[c];
    }
}

namespace {

// The sums of one tile of sources, added to a state.
void add_tile(const ExponentialPairs& p, const Exponentials& e, int64_t head, int64_t tile,
              real* state, real* work) {
  std::fill_n(work, 2 * p.dim, real(0));
  const int64_t first = tile * ExponentialPairs::kTile,
                count = std::min(ExponentialPairs::kTile, p.valid(head / p.heads) - first);
  add_column_sums(work, e.rows.data() + (head * p.len + first) * 2 * p.dim, count, 2 * p.dim);
  merge(p.dim, 1, e.tops.data() + (head * p.tiles() + tile) * p.dim, work, state, state + p.dim,
        work + 2 * p.dim);
}

}  // namespace

Tensor far_sums(const ExponentialPairs& p, const Exponentials& e) {
  const Tensor far({p.all_heads(), p.tiles(), 3 * p.dim});
  run_tasks(p.all_heads(), 7 * p.dim, [&](int64_t head, real* work) {
    const Mark mark(Part::sums);
    const auto of = [&](int64_t tile) {
      return far.data() + (head * p.tiles() + tile) * 3 * p.dim;
    };
    const auto range = [&](int64_t tile) { return p.of(tile, head / p.heads); };
    real* const state = work + 4 * p.dim;
    clear_sums(p.dim, state);
    for (int64_t at = 0, next = 0; at < p.tiles(); ++at) {
      for (; p.sees != ExponentialPairs::Sees::future && next < range(at).near; ++next)
        add_tile(p, e, head, next, state, work);
      std::copy_n(state, 3 * p.dim, of(at));
    }
    clear_sums(p.dim, state);
    for (int64_t at = p.tiles() - 1, next = range(at).end; at >= 0; --at) {
      while (p.sees != ExponentialPairs::Sees::past && range(at).far < next)
        add_tile(p, e, head, --next, state, work);
      merge(p.dim, 1, state, state + p.dim, of(at), of(at) + p.dim, work);
    }
    count_flops(far_flops(p, p.valid(head / p.heads)));
  });
  return far;
}

}  // namespace exponential_detail
}  // namespace attn
