// One source, compiled by Highway for each instruction set; see listed_rows.h.
#include "core/simd/listed_rows.h"

#include <algorithm>

#include "core/simd/fetch.h"
#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/listed_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

HWY_INLINE void add_times(int64_t dim, real factor, const real* from, real* to) {
  const Vector by = all_of(factor);
  over_row(dim, [=](int64_t j, auto part) HWY_ATTR {
    part.store(hn::MulAdd(by, part.load(from + j), part.load(to + j)), to + j);
  });
}

// Rows that lie in memory are fetched this many rows ahead.
constexpr int64_t kRowsAhead = 8;
HWY_INLINE void fetch_ahead(const ListedRows& rows, const real* matrix, int64_t e, int64_t j,
                            int64_t count) {
  if (e + kRowsAhead < rows.count) fetch_row(rows.row(matrix, e + kRowsAhead) + j, count);
}

// out (+)= Σ_e weights[e]·row e in the columns of kVectors vectors, whose sums stay in registers:
// so many additions do not wait for each other.
template <int kVectors, bool kFetch>
HWY_INLINE void sum_columns(const ListedRows& rows, const real* weights, const real* matrix,
                            int64_t j, bool add, real* out) {
  const Tag d;
  Vector sums[kVectors];
  for (int v = 0; v < kVectors; ++v)
    sums[v] = add ? hn::LoadU(d, out + j + v * kVector) : hn::Zero(d);
  for (int64_t e = 0; e < rows.count; ++e) {
    if constexpr (kFetch) fetch_ahead(rows, matrix, e, j, kVectors * kVector);
    const Vector weight = all_of(weights[e]);
    const real* const row = rows.row(matrix, e) + j;
    for (int v = 0; v < kVectors; ++v)
      sums[v] = hn::MulAdd(weight, hn::LoadU(d, row + v * kVector), sums[v]);
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, out + j + v * kVector);
}

template <bool kFetch>
HWY_INLINE void sum_listed(const ListedRows& rows, const real* weights, const real* matrix,
                           bool add, real* out) {
  int64_t j = 0;
  for (; j + 8 * kVector <= rows.dim; j += 8 * kVector)
    sum_columns<8, kFetch>(rows, weights, matrix, j, add, out);
  for (; j + 4 * kVector <= rows.dim; j += 4 * kVector)
    sum_columns<4, kFetch>(rows, weights, matrix, j, add, out);
  for (; j + kVector <= rows.dim; j += kVector)
    sum_columns<1, kFetch>(rows, weights, matrix, j, add, out);
  if (j == rows.dim) return;
  const Partial part{rows.dim - j};
  Vector sum = add ? part.load(out + j) : hn::Zero(Tag());
  for (int64_t e = 0; e < rows.count; ++e)
    sum = hn::MulAdd(all_of(weights[e]), part.load(rows.row(matrix, e) + j), sum);
  part.store(sum, out + j);
}
void sum_of_rows(const ListedRows& rows, const real* weights, const real* matrix, real* out) {
  if (rows.in_memory)
    sum_listed<true>(rows, weights, matrix, false, out);
  else
    sum_listed<false>(rows, weights, matrix, false, out);
}

// dots[e] for kRows edges: x is loaded once for all, and no sum waits for another.
template <int kRows, bool kFetch>
HWY_INLINE void dots_of_some(const ListedRows& rows, const real* x, const real* matrix, int64_t e,
                             real* dots) {
  const Tag d;
  const real* from[kRows];
  Vector sums[kRows];
  for (int r = 0; r < kRows; ++r) {
    from[r] = rows.row(matrix, e + r);
    sums[r] = hn::Zero(d);
    if constexpr (kFetch) fetch_ahead(rows, matrix, e + r, 0, rows.dim);
  }
  over_row(rows.dim, [&](int64_t j, auto part) HWY_ATTR {
    const Vector at = part.load(x + j);
    for (int r = 0; r < kRows; ++r) sums[r] = hn::MulAdd(at, part.load(from[r] + j), sums[r]);
  });
  for (int r = 0; r < kRows; ++r) dots[e + r] = hn::GetLane(hn::SumOfLanes(d, sums[r]));
}
template <bool kFetch>
HWY_INLINE void dots_of_all(const ListedRows& rows, const real* x, const real* matrix, real* dots) {
  int64_t e = 0;
  for (; e + 8 <= rows.count; e += 8) dots_of_some<8, kFetch>(rows, x, matrix, e, dots);
  for (; e < rows.count; ++e) dots_of_some<1, kFetch>(rows, x, matrix, e, dots);
}
void dots_of_listed(const ListedRows& rows, const real* x, const real* matrix, real* dots) {
  if (rows.in_memory)
    dots_of_all<true>(rows, x, matrix, dots);
  else
    dots_of_all<false>(rows, x, matrix, dots);
}

void add_to_listed(const ListedRows& rows, const real* x, const real* factors, real* to) {
  for (int64_t e = 0; e < rows.count; ++e)
    add_times(rows.dim, factors[e], x, to + rows.indices[e] * rows.dim);
}

void dots_then_add(const ListedRows& rows, const real* x, const real* matrix, const real* factors,
                   real* dots, real* to) {
  dots_of_listed(rows, x, matrix, dots);
  if (to) add_to_listed(rows, x, factors, to);
}

void sum_then_add(const ListedRows& rows, const real* x, const real* matrix, const real* factors,
                  real* sum, real* to) {
  if (sum) sum_listed<false>(rows, factors, matrix, true, sum);
  if (to) add_to_listed(rows, x, factors, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(sum_of_rows);
HWY_EXPORT(dots_of_listed);
HWY_EXPORT(dots_then_add);
HWY_EXPORT(sum_then_add);

void weighted_rows(const ListedRows& rows, const real* weights, const real* matrix, real* out) {
  HWY_DYNAMIC_DISPATCH(sum_of_rows)(rows, weights, matrix, out);
}
void dots_with_rows(const ListedRows& rows, const real* x, const real* matrix, real* dots) {
  HWY_DYNAMIC_DISPATCH(dots_of_listed)(rows, x, matrix, dots);
}
void dots_and_add(const ListedRows& rows, const real* x, const real* matrix, const real* factors,
                  real* dots, real* to) {
  HWY_DYNAMIC_DISPATCH(dots_then_add)(rows, x, matrix, factors, dots, to);
}
void sum_and_add(const ListedRows& rows, const real* x, const real* matrix, const real* factors,
                 real* sum, real* to) {
  HWY_DYNAMIC_DISPATCH(sum_then_add)(rows, x, matrix, factors, sum, to);
}

}  // namespace attn
#endif
