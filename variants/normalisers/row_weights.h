// How logits become weights where an online softmax does not do: rules that read a row as a whole,
// or the logits of several maps. The strips of strip_attention.h give a rule all visible logits of
// some queries, or, where each weight depends on its own logit alone, those of a piece of keys.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// Logits of some queries, then their weights or gradients: `maps` matrices [rows, stride].
struct RowStrip {
  int64_t maps = 1, rows = 1, stride = 0;
  const int64_t* counts = nullptr;  // [rows]: keys that the query sees; columns behind are anything
  real* data = nullptr;
  real* room = nullptr;  // RowWeights::room_reals(stride) numbers, or null where that is 0

  real* row(int64_t map, int64_t r) const { return data + (map * rows + r) * stride; }
};

class RowWeights {
 public:
  virtual ~RowWeights() = default;

  // Heads whose logits make the weights of each of them together; a head has `parts` maps: one for
  // each part of its queries and keys, which are divided along head_dim. A strip has group·parts
  // maps, and the weights of head h of the group are written to map h·parts.
  int64_t group = 1, parts = 1;
  bool by_pair = false;       // each weight depends on its own logit alone
  int64_t kept = 0;           // maps that keep() leaves for gradient(), beside those of `x`
  int64_t sums = 0;           // gradients of learned numbers
  double flops = 0;           // of weigh() for a column of a row, all maps
  double backward_flops = 0;  // of keep() and gradient()

  virtual int64_t room_reals(int64_t) const { return 0; }  // for rows of that stride

  // Replaces logits by weights.
  virtual void weigh(const RowStrip& x) const = 0;
  // The same in a backward, where `x` and the maps of `kept` are left for gradient(). Returns the
  // weights, laid out as the maps of the strip are: in `x` or in `spare`, as many maps, which hold
  // the gradients of weights afterwards.
  virtual RowStrip keep(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& spare) const {
    (void)kept_maps, (void)spare;
    weigh(x);
    return x;
  }
  // Replaces the gradients of weights `g`, of head h of the group in map h·parts, by those of the
  // logits; adds to learned[0 .. sums - 1].
  virtual void gradient(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& g,
                        double* learned) const = 0;
};

}  // namespace attn
