// Keys and values that stand for many positions, the slow, obvious way: in double, one sum after
// the other.
#pragma once

#include <algorithm>
#include <vector>

#include "variants/reference/attention.h"

namespace oracle {

inline Index valid_of(const Array& x, Index b, const std::vector<Index>& lengths) {
  return lengths.empty() ? x.len : lengths[static_cast<std::size_t>(b)];
}

// weight [heads, stride, dim, dim]; bias and null [1, 1, heads, dim], or null pointers.
struct Compressed {
  const Array* weight;
  const Array* bias;
  const Array* null;
};

// The null row, then a row a block: the bias and the sum of its rows, each through its own matrix.
inline Array compressed(const Array& x, const Compressed& by, const std::vector<Index>& lengths) {
  const Index stride = by.weight->heads, nulls = by.null ? 1 : 0;
  Array out(x.batch, x.heads, nulls + (x.len + stride - 1) / stride, x.dim);
  for (Index b = 0; b < x.batch; ++b)
    for (Index h = 0; h < x.heads; ++h) {
      if (by.null) add_times(1, by.null->line(0, 0, h), out.line(b, h, 0), x.dim);
      for (Index i = 0; i < valid_of(x, b, lengths); ++i) {
        double* const to = out.line(b, h, nulls + i / stride);
        if (by.bias && i % stride == 0) add_times(1, by.bias->line(0, 0, h), to, x.dim);
        for (Index a = 0; a < x.dim; ++a)
          add_times(x.at(b, h, i, a), by.weight->line(h, i % stride, a), to, x.dim);
      }
    }
  return out;
}

// Liu et al. 2018, section 4.2.4; causal: a block is seen from its last position on.
inline Array memory_compressed(const Array& q, const Array& k, const Array& v,
                               const Compressed& keys, const Compressed& values, bool causal,
                               const std::vector<Index>& lengths,
                               const std::vector<Index>& rows = {}) {
  const Index stride = keys.weight->heads, nulls = keys.null ? 1 : 0;
  Visibility seen{.rows = rows};
  seen.allows = [&](Index b, Index, Index i, Index slot) {
    const Index valid = valid_of(k, b, lengths);
    if (valid == 0) return false;
    if (slot < nulls) return true;
    const Index block = slot - nulls;
    return block * stride < valid && (!causal || (block + 1) * stride - 1 <= i);
  };
  return softmax_attention(q, compressed(k, keys, lengths), compressed(v, values, lengths), seen);
}

}  // namespace oracle
