// What forward and backward of linear attention share: how keys and queries are cut into chunks,
// and the states at the borders.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace attn {

// A state is S = Σ exp(log_scale - M)·φ(k)ᵀv, [features, dim] row-major, followed by z = Σ
// exp(log_scale - M)·φ(k), [features].
struct LinearProblem {
  int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0, features = 0, dim = 0;
  bool causal = false;
  std::vector<int64_t> kv_lengths;

  // Causal: a state every 128 keys costs a quarter of what features = 256 cost; inside a chunk,
  // strips of 32 queries.
  int64_t chunk() const { return causal ? 128 : 512; }
  static constexpr int64_t kStrip = 32;
  int64_t chunks() const {
    return ((causal ? kv_len : std::max(kv_len, q_len)) + chunk() - 1) / chunk();
  }
  int64_t state_size() const { return features * (dim + 1); }
  int64_t offset() const { return kv_len - q_len; }  // sequences are aligned at the end
  int64_t length(int64_t head) const {
    return kv_lengths.empty() ? kv_len : kv_lengths[static_cast<size_t>(head / heads)];
  }
};

// The valid keys of a chunk and the queries whose last visible key (were none padded) lies in it;
// not causal: simply the rows of that number.
struct Chunk {
  int64_t key = 0, keys = 0, row = 0, rows = 0;
};

inline Chunk chunk_of(const LinearProblem& p, int64_t head, int64_t index) {
  const int64_t begin = index * p.chunk(), end = begin + p.chunk(),
                shift = p.causal ? p.offset() : 0;
  const int64_t key = std::min(begin, p.length(head)), key_end = std::min(end, p.length(head));
  const int64_t row = std::clamp<int64_t>(begin - shift, 0, p.q_len);
  const int64_t row_end = std::clamp<int64_t>(end - shift, 0, p.q_len);
  return {key, key_end - key, row, row_end - row};
}

// exp(from - to), what a sum kept relative to `from` is worth relative to `to`; a sum of nothing
// has from = -inf.
inline real rescale(real from, real to) {
  return from == -kInfinity ? real(0) : std::exp(from - to);
}

// The running maximum of log_scale along a head's keys, starting from what is known before the
// first.
class RunningTop {
 public:
  RunningTop(const real* log_scale, real top, int64_t key)
      : log_scale_(log_scale), top_(top), key_(key) {}
  real through(int64_t end) {  // of the keys before `end`; -inf: there is none
    if (!log_scale_ && end > key_) top_ = 0;
    if (log_scale_)
      for (; key_ < end; ++key_) top_ = std::max(top_, log_scale_[key_]);
    return top_;
  }

 private:
  const real* log_scale_;
  real top_;
  int64_t key_;
};

// Sums of weights below this count as 0: their terms are denormal, and dividing gradients by them
// overflows.
inline constexpr real kNoMass = std::numeric_limits<real>::min() * real(1e8);

struct LinearSaved {
  Tensor phi_q, phi_k, v, out, log_scale;
  Tensor mass;  // [batch·heads, q_len]: Σ_j w_ij exp(log_scale_j - M_i)
  Tensor
      states;  // [batch·heads, chunks or 1, state_size]: before each chunk; not causal: of all keys
  Tensor tops;  // [batch·heads, chunks or 1]: their M

  const real* scale_of(int64_t head) const {
    return log_scale.defined() ? log_scale.data() + head * v.dim(2) : nullptr;
  }
};

void linear_backward(const LinearProblem& problem, const LinearSaved& saved, const Tensor& grad_out,
                     std::span<Tensor> grads);

}  // namespace attn
