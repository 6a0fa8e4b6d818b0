// Rows over their size: y = gain ⊙ x / √(c·Σx² + ε), with c = 1/dim for the root of the mean square
// (Zhang and Sennrich 2019, arXiv:1910.07467, eq. 4) and c = 1 for the ℓ2 norm. O(dim) a row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/autograd/var.h"
#include "variants/api/decoder.h"

namespace attn {

struct RowScale {
  bool mean = true;  // the mean of squares, or else their sum
  double epsilon = 1e-6;

  double factor(int64_t dim) const { return mean ? 1 / static_cast<double>(dim) : 1; }
};

// x [batch, heads, len, dim]; gain [1, dim] for all heads, or [heads, 1], or undefined: 1. Rows at
// or beyond lengths[b], where given, are not read and give 0.
Var scaled_rows(const Var& x, const Var& gain, const RowScale& scale,
                std::span<const int64_t> lengths = {});

// The gains of queries and of keys, as scaled_rows() takes them; undefined: 1.
struct QueryKeyScale {
  RowScale scale;
  Tensor query_gain, key_gain;
  double logits = 1;  // factor of all logits
};

// Gives `inner` queries and keys over their size. Gains of keys must be the same for all heads.
std::unique_ptr<Decoder> scaled_decoder(const Shape& position, std::unique_ptr<Decoder> inner,
                                        const QueryKeyScale& scale);

// Divides what `inner` answers by its size, times gain [1, dim] and `factor`.
std::unique_ptr<Decoder> normed_decoder(const Shape& position, std::unique_ptr<Decoder> inner,
                                        const RowScale& scale, const Tensor& gain, double factor);

}  // namespace attn
