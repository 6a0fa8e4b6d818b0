// Codes of sign bits; see sign_codes.h.
#include "variants/hashing/sign_codes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/memory.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kSignRows = 48;  // hashed at once

// Eight sums side by side: one alone would wait for each addition.
double exact_dot(const real* x, const real* y, int64_t dim) {
  constexpr int64_t kSums = 8;
  double sums[kSums] = {};
  int64_t c = 0;
  for (; c + kSums <= dim; c += kSums)
    for (int64_t s = 0; s < kSums; ++s)
      sums[s] += static_cast<double>(x[c + s]) * static_cast<double>(y[c + s]);
  for (; c < dim; ++c) sums[0] += static_cast<double>(x[c]) * static_cast<double>(y[c]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Products of a row with planes may be off by this. Not below the smallest normal number: tiny
// products lose their digits.
real rounding_of(const real* x, double longest, int64_t dim) {
  const double size = std::sqrt(exact_dot(x, x, dim)) * longest;
  return static_cast<real>(static_cast<double>(dim) * (static_cast<double>(kEpsilon) * size) +
                           static_cast<double>(std::numeric_limits<real>::min()) * 1e3);
}

// The code of one hash, whose products with the row are given.
int32_t code_of(const real* products, const real* x, const real* planes, int64_t bits, int64_t dim,
                real rounding) {
  int32_t code = 0, unsure = 0;  // without branches: signs are random
  for (int64_t b = 0; b < bits; ++b) {
    code |= int32_t{products[b] > 0} << b;
    unsure |= int32_t{!(std::abs(products[b]) > rounding)} << b;
  }
  for (int64_t b = 0; unsure >> b != 0; ++b)
    if (unsure >> b & 1)
      code = (code & ~(1 << b)) | int32_t{exact_dot(x, planes + b * dim, dim) > 0} << b;
  return code;
}

}  // namespace

SignHashes::SignHashes(const Tensor& all, int64_t head, int64_t bits_of_hash, double longest_of_all)
    : planes(all.data() + head * all.dim(1) * all.dim(2)),
      hashes(all.dim(1) / bits_of_hash),
      bits(bits_of_hash),
      dim(all.dim(2)),
      longest(longest_of_all) {}

double SignHashes::longest_of(const Tensor& planes) {
  double most = 0;
  const int64_t dim = planes.dim(2);
  for (int64_t row = 0; row < planes.size() / dim; ++row)
    most = std::max(most, exact_dot(planes.data() + row * dim, planes.data() + row * dim, dim));
  return std::sqrt(most);
}

int64_t SignHashes::together(int64_t bits) { return std::max<int64_t>(1, kPanel / bits); }

int64_t SignHashes::room_reals(int64_t dim) {
  return padded_reals(packed_reals(kPanel, dim)) + padded_reals(kSignRows * kPanel);
}

void SignHashes::group_codes(int64_t rows, const real* x, real* room, int32_t* codes,
                             int64_t stride) const {
  const Mark mark(Part::hashing);
  const int64_t all = hashes * bits;
  real* const products = room + padded_reals(packed_reals(kPanel, dim));
  pack_transposed(planes, all, dim, dim, room);
  for (int64_t i = 0; i < rows; i += kSignRows) {
    const int64_t some = std::min(kSignRows, rows - i);
    product(some, all, dim, {x + i * dim, dim}, packed(room, dim), products, kPanel);
    for (int64_t r = 0; r < some; ++r) {
      const real* const row = x + (i + r) * dim;
      const real rounding = rounding_of(row, longest, dim);
      for (int64_t h = 0; h < hashes; ++h)
        codes[h * stride + i + r] = code_of(products + r * kPanel + h * bits, row,
                                            planes + h * bits * dim, bits, dim, rounding);
    }
  }
  count_flops(2 * static_cast<double>(rows * all * dim));
}

void SignHashes::row_codes(const real* x, int32_t* codes) const {
  const real rounding = rounding_of(x, longest, dim);
  real products[kMostBits];
  for (int64_t h = 0; h < hashes; ++h) {
    const real* const own = planes + h * bits * dim;
    dots_of_rows(bits, dim, own, dim, x, 0, products);
    codes[h] = code_of(products, x, own, bits, dim, rounding);
  }
}

}  // namespace attn
