// Softmax attention composed from ops whose parts a fault may replace. O(n²·d) time and memory.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "variants/api/variant_info.h"

namespace attn {

struct Kept {  // what an object wrongly keeps between calls
  int64_t number = 0;
  std::vector<Tensor> tensors;
};

struct Pass {  // what a fault can look at
  const Mask& mask;
  int64_t heads, q_len, kv_len;
  bool recorded;
  Kept& kept;

  bool cross() const { return q_len != kv_len; }
  bool padded() const {
    return std::any_of(mask.kv_lengths.begin(), mask.kv_lengths.end(),
                       [&](int64_t length) { return length < kv_len; });
  }
  int64_t valid(int64_t b) const {
    return mask.kv_lengths.empty() ? kv_len : mask.kv_lengths[static_cast<size_t>(b)];
  }
  int64_t position(int64_t i) const { return i + kv_len - q_len; }
};
using PlantedChange = std::function<Var(const Var&, const Pass&)>;

struct Faults {
  PlantedChange query, key, value, logits, weights, output;
  // Replaces `seen`, whether query i of batch entry b and head h sees key j.
  std::function<bool(const Pass&, int64_t b, int64_t h, int64_t i, int64_t j, bool seen)> sees;
  std::function<void(Cost&, const AttentionShape&)> cost;
  // Memory that a pass holds beside its tensors.
  std::function<std::shared_ptr<void>(int64_t q_len, int64_t kv_len)> beside;
  // Replaces the products of queries and keys.
  std::function<Var(const Var& q, const Var& k)> scores;
  bool gains = false;                             // learns a factor for each head
  bool gains_twice = false, gains_drift = false;  // under one name; a little at each call
  bool secret = false;                            // draws a factor that is no weight
  int64_t gains_of = 1 << 20;                     // head h uses the gain h % gains_of
};

// out times `factor(b, h, i)`.
Var scaled_rows(const Var& out, const std::function<double(int64_t, int64_t, int64_t)>& factor);
// The value of x with another gradient.
Var with_gradient(const Var& x, std::function<double(double)> change);

// Referenced: it declares the mathematics of softmax attention without a fault.
VariantInfo softmax_with(const std::string& name, const Faults& faults, const Traits& traits,
                         bool referenced);

}  // namespace attn
