// Queries as quantised_product.h keeps them in its workspace: as given, and rounded to 16 bits, as
// two bytes and as words. Internal to quantised_product.cc, quantised_vnni.cc and
// quantised_avx2.cc.
#pragma once

#include <cstdint>

#include "core/base/memory.h"
#include "core/simd/quantised_product.h"

namespace attn {

// A number of a query is scale·(256·high + low). Words hold four channels; the sums are those of a
// block's bytes, since the bytes of keys are integers plus a constant. `words` hold the same in 16
// bits: for four channels a word of 0 and 2 and a word of 1 and 3.
struct QueryBlock {
  int32_t high[kScaleChannels / 4] = {}, low[kScaleChannels / 4] = {};
  int32_t words[kScaleChannels / 2] = {};
  int32_t high_sum = 0, low_sum = 0;
};

struct QuantisedQueries {
  real* numbers;       // [rows, dim]
  float* scales;       // [rows]
  QueryBlock* blocks;  // [rows, blocks]

  static QuantisedQueries in(real* work, int64_t rows, int64_t dim) {
    real* const scales = work + padded_reals(rows * dim);
    real* const blocks = scales + padded_reals(rows);
    return {work, reinterpret_cast<float*>(scales), reinterpret_cast<QueryBlock*>(blocks)};
  }
};

inline constexpr int64_t kMostRows = 4;     // of queries or weights, that share a load
inline constexpr int64_t kStepBytes = 128;  // 32 columns or channels of four bytes each

// Calls one of a template's instances for 1 to 4 rows.
#define ATTN_OF_ROWS(call, rows, bits, ...)         \
  switch ((rows) + ((bits) == 8 ? 0 : kMostRows)) { \
    case 1:                                         \
      call<1, 8>(__VA_ARGS__);                      \
      break;                                        \
    case 2:                                         \
      call<2, 8>(__VA_ARGS__);                      \
      break;                                        \
    case 3:                                         \
      call<3, 8>(__VA_ARGS__);                      \
      break;                                        \
    case 4:                                         \
      call<4, 8>(__VA_ARGS__);                      \
      break;                                        \
    case 5:                                         \
      call<1, 4>(__VA_ARGS__);                      \
      break;                                        \
    case 6:                                         \
      call<2, 4>(__VA_ARGS__);                      \
      break;                                        \
    case 7:                                         \
      call<3, 4>(__VA_ARGS__);                      \
      break;                                        \
    default:                                        \
      call<4, 4>(__VA_ARGS__);                      \
  }

}  // namespace attn
