// Keys and values of a unit with one head, for decoding: a step reads each of them once. A step
// costs 2·(base + units) FLOPs for each position.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace attn {

enum class UnitScore {
  squared_relu,  // relu(q·k / (visible keys))²
  softmax,       // of q·k/√base
};

class UnitCache {
 public:
  UnitCache(int64_t batch, int64_t capacity, int64_t base, int64_t units);
  int64_t capacity() const { return keys_.dim(1); }
  int64_t bytes() const;

  // Rows k [batch, .., base] and v [batch, .., units] of the positions from `at` on. Positions
  // beyond the capacity overwrite the first ones.
  void put(int64_t at, const Tensor& k, const Tensor& v) const;
  // Σ_j weight_j·value_j over the first `count` positions, for q [batch, .., base]: [batch, 1,
  // units]. Counts its FLOPs and what it reads.
  Tensor mixed(const Tensor& q, int64_t count, UnitScore score) const;

  int64_t multiply_adds(int64_t count) const;  // of mixed()
  int64_t moved(int64_t count) const;          // numbers: read by mixed(), and the position put

 private:
  Tensor keys_, values_;  // [batch, capacity, base or units]
};

}  // namespace attn
