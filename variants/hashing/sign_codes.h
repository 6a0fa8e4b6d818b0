// Codes of sign bits: bit b of a hash is whether the row lies on the positive side of its plane b.
// The sign of a product is that of the exact one, whatever the order of the sum: a product within
// the rounding of 0 is made again in double. 2·hashes·bits·d FLOPs a row.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace attn {

// The hashes of one head that are made together: as many as fit a panel of the product.
struct SignHashes {
  static constexpr int64_t kMostBits = 12;

  const real* planes = nullptr;  // [hashes·bits, dim]
  int64_t hashes = 1, bits = 1, dim = 1;
  double longest = 0;  // length of a plane

  // planes [heads, hashes·bits, dim]
  SignHashes(const Tensor& all, int64_t head, int64_t bits_of_hash, double longest_of_all);
  static double longest_of(const Tensor& planes);

  int64_t buckets() const { return int64_t{1} << bits; }
  static int64_t together(int64_t bits);  // hashes of a group
  SignHashes part(int64_t first, int64_t count) const {
    SignHashes some = *this;
    some.planes += first * bits * dim, some.hashes = count;
    return some;
  }
  // Numbers of workspace for a group of hashes.
  static int64_t room_reals(int64_t dim);
  // codes[hash·stride + row] of `rows` rows; counts FLOPs. At most together(bits) hashes.
  void group_codes(int64_t rows, const real* x, real* room, int32_t* codes, int64_t stride) const;
  // codes[hash] of one row, without a workspace; counts none.
  void row_codes(const real* x, int32_t* codes) const;
};

}  // namespace attn
