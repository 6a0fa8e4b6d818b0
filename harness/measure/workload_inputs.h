// The inputs of a workload at scope attention or layer, drawn from its seed and its draw; the
// positions that a decoder holds before its step; and the row of the inputs that changes before
// each pass.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "harness/measure/workload.h"

namespace attn {

// q, k and v, [batch, heads or kv_heads, positions, head_dim]; or, where `rows`, x [batch, length,
// heads · head_dim]. Not rounded.
std::vector<Tensor> drawn_inputs(const WorkloadSpec& spec, bool rows);
std::vector<Tensor> drawn_gates(const WorkloadSpec& spec, const Attention& attention);

// Keys, values and gates of `count` positions from `first` on, of mode decode, and the queries of a
// prompt that is weighed by them; not rounded.
struct Prefill {
  Tensor keys, values;  // [batch, kv_heads, count, head_dim]
  std::vector<Tensor> gates;
  Tensor queries;  // [batch, heads, count, head_dim]
};
Prefill drawn_prefill(const WorkloadSpec& spec, const Attention& attention, int64_t first,
                      int64_t count);

// Sets of numbers that take turns in one row of the inputs, so that no pass gets the inputs of the
// pass before it. One row, which belongs to one head, costs a pass nothing that shows.
template <class Number>
class ChangingRow {
 public:
  static constexpr int64_t kSets = 3;  // two would hide an answer that is kept for two passes

  ChangingRow() = default;
  ChangingRow(Number* row, int64_t dim, const WorkloadSpec& spec) : row_(row), dim_(dim) {
    Rng random = rng(spec.input_seed(), "workload changing row");
    for (int64_t i = 0; i < kSets * dim; ++i) {
      const auto value = static_cast<real>(random.normal());
      if constexpr (std::is_same_v<Number, BFloat16>)
        sets_.push_back(to_bfloat16(static_cast<float>(value)));
      else
        sets_.push_back(value);
    }
  }
  void take(int64_t set) {
    if (row_) std::copy_n(sets_.data() + set % kSets * dim_, dim_, row_);
  }

 private:
  Number* row_ = nullptr;
  int64_t dim_ = 0;
  std::vector<Number> sets_;  // outside of the pool, whose bytes are measured
};

}  // namespace attn
