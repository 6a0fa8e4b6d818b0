// Sums over rows and columns, vectorised by hand since the compiler must not reorder additions: the
// order depends on the shape alone. Near memory speed.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/parallel.h"
#include "core/real.h"

// Before a loop whose iterations are independent even where its pointers are the same (an op in
// place).
#ifdef __clang__
#define ATTN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ATTN_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace attn {

inline constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(real));
using Lanes [[gnu::vector_size(64)]] = real;

// Sum over j of term(j, Lanes()) for whole vectors and of term(j, real()) for the rest.
template <class Term>
real sum_lanes(int64_t n, const Term& term) {
  Lanes sums = {}, more = {};
  int64_t j = 0;
  for (; j + 2 * kLanes <= n; j += 2 * kLanes) {
    Lanes a, b;
    term(j, a);
    term(j + kLanes, b);
    sums += a;
    more += b;
  }
  for (; j + kLanes <= n; j += kLanes) {
    Lanes a;
    term(j, a);
    sums += a;
  }
  sums += more;
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; l++) sums[l] += sums[l + half];
  real total = sums[0];
  for (; j < n; j++) {
    real a;
    term(j, a);
    total += a;
  }
  return total;
}

inline real row_sum(const real* x, int64_t n) {
  return sum_lanes(n, [x](int64_t j, auto& t) { std::memcpy(&t, x + j, sizeof t); });
}

inline real row_dot(const real* x, const real* y, int64_t n) {
  return sum_lanes(n, [x, y](int64_t j, auto& t) {
    std::remove_reference_t<decltype(t)> u;
    std::memcpy(&t, x + j, sizeof t);
    std::memcpy(&u, y + j, sizeof u);
    t *= u;
  });
}

inline real row_max(const real* x, int64_t n) {  // -infinity for an empty row; NaN is passed over
  Lanes most = Lanes{} - kInfinity;
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    Lanes a;
    std::memcpy(&a, x + j, sizeof a);
    most = a > most ? a : most;
  }
  real result = -kInfinity;
  for (int64_t l = 0; l < kLanes; l++) result = most[l] > result ? most[l] : result;
  for (; j < n; j++) result = x[j] > result ? x[j] : result;
  return result;
}

// to[j] += sum of from[i, j] over the rows i, which are n apart, or `stride`
inline void add_column_sums(real* to, const real* from, int64_t rows, int64_t n,
                            int64_t stride = 0) {
  if (stride == 0) stride = n;
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const real *a = from + row * stride, *b = a + stride, *c = b + stride, *d = c + stride;
    ATTN_INDEPENDENT
    for (int64_t j = 0; j < n; j++) to[j] += (a[j] + b[j]) + (c[j] + d[j]);
  }
  for (; row < rows; row++)
    for (int64_t j = 0; j < n; j++) to[j] += from[row * stride + j];
}

// parallel_for without its cost where `work` elements of a cheap loop are too few to share.
template <class Body>
void over_range(int64_t count, int64_t work_each, const Body& body) {
  if (count <= 0) return;
  constexpr int64_t kWorth = 1 << 15;  // elements a thread should have: about 10 µs
  if (count * work_each < 2 * kWorth || threads() == 1)
    body(int64_t{0}, count);
  else
    parallel_for(count, (kWorth + work_each - 1) / (work_each > 0 ? work_each : 1), body);
}

}  // namespace attn
