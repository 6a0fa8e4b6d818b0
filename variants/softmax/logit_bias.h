// Additive biases of the logits of tiled softmax attention: rows c_i - c_j of each head, where c
// are sums of log forget gates (Lin et al. 2025, arXiv:2503.02130), or a table over j - i (Press et
// al. 2021, arXiv:2108.12409). Two operations a pair; memory O(n) a head. A strip adds its biases
// to its logits. Gradients are summed in double.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/memory.h"
#include "core/base/span.h"
#include "core/tensor/tensor.h"

namespace attn {

// A log-gate of at least -1e4: that much hides all before it, and sums keep their digits. NaN
// stays.
inline double not_below_closed(double log_gate) { return log_gate < -1e4 ? -1e4 : log_gate; }

// Logits of query `position` + r and key j, in natural units. With gates, queries see no later key.
class LogitBias {
 public:
  // Σ_{j<s<=i} log_gates[s]: log_gates [batch, heads, kv_len, 1], all <= 0. Padding is not read and
  // counts as 0. Empty `lengths`: no padding.
  static std::shared_ptr<const LogitBias> of_gates(const Tensor& log_gates,
                                                   const std::vector<int64_t>& lengths);
  // table[h][j - i + kv_len - 1] for the position i of a query: table [heads, q_len + kv_len - 1].
  static std::shared_ptr<const LogitBias> of_distances(const Tensor& table, int64_t kv_len);

  // Some rows of logits, at most kMostKeys columns: row r is the query at `position` + r, column 0
  // is keys.begin.
  static constexpr int64_t kMostKeys = 512;
  struct Tile {
    int64_t head, position, rows;
    Span keys;
    int64_t stride;
  };
  // Adds the biases to logits in units of log2.
  void add(const Tile& tile, real* logits) const;

  // The numbers of the sum of gradients of one head. add_gradient() adds, of each bias, `grads` of
  // its logits: of log_gates [kv_len] or of a row of the table. Every term of the sum of a gate is
  // of a pair that the gate lies between: a closed gate's small gradient is no difference of large
  // sums.
  int64_t gradient_size() const { return gates_ ? kv_len_ : distances_; }
  void add_gradient(const Tile& tile, const real* grads, double* sums) const;
  // Adds `factor` times the sums [heads, parts, gradient_size()], heads those of all sequences, to
  // the gradient of what the bias was made of.
  void reduce(const double* sums, int64_t heads, int64_t parts, double factor,
              const Tensor& grad) const;

 private:
  LogitBias() = default;
  void add_gates(const Tile& tile, real* logits) const;
  void add_gate_gradient(const Tile& tile, const real* grads, double* sums) const;
  const double* gates_of(int64_t head) const { return gates_ + head * kv_len_; }
  const real* row_of(int64_t head, int64_t position) const {  // table of a query, by key
    return table_.data() + head % table_.dim(0) * distances_ + kv_len_ - 1 - position;
  }

  int64_t heads_ = 0, kv_len_ = 0, distances_ = 0;
  std::vector<int64_t> lengths_;
  Block sums_;                     // [batch · heads, kv_len] numbers of double
  const double* gates_ = nullptr;  // sums of log-gates in units of log2, or null
  Tensor table_;                   // in units of log2, or undefined
};

}  // namespace attn
