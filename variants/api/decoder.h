// Decoding: one position after the other, answered from the state of those before it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/tensor/bfloat16_tensor.h"
#include "core/tensor/tensor.h"

namespace attn {

// The state of batch × heads sequences of equal length. A step appends one position to each and
// computes its output, which equals the row of that position in a causal forward pass. Query heads
// may share the keys, values and state of fewer heads, as in multi-query and grouped-query
// attention (arXiv:1911.02150, arXiv:2305.13245): query head h uses head h / (heads / kv_heads).
// Nothing is recorded for gradients. Not thread-safe.
class Decoder {
 public:
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Prefill: appends len positions without computing outputs. k, v [batch, kv_heads, len,
  // head_dim]. q [batch, heads, len, head_dim] is needed only where keys_are_queries(). `gates` are
  // those of Attention::gates(), each [batch, heads, len, width].
  void extend(const Tensor& k, const Tensor& v, const Tensor& q = {},
              std::span<const Tensor> gates = {});
  // Decode step: appends one position and computes its output. q, out [batch, heads, 1, head_dim],
  // k, v [batch, kv_heads, 1, head_dim]. `out` must not overlap q, k, v or gates.
  void step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
            std::span<const Tensor> gates = {});
  // The same in bfloat16. Unless keeps_bfloat16(), the numbers are widened to float32 on entry, the
  // state is in float32, and the output is rounded. Gates are in float32 always.
  void extend(const BFloat16Tensor& k, const BFloat16Tensor& v, const BFloat16Tensor& q = {},
              std::span<const Tensor> gates = {});
  void step(const BFloat16Tensor& q, const BFloat16Tensor& k, const BFloat16Tensor& v,
            const BFloat16Tensor& out, std::span<const Tensor> gates = {});
  bool keeps_bfloat16() const { return do_keeps_bfloat16(); }  // its state holds bfloat16
  // Lets the next step replace the last one, so that a benchmark can repeat a step. A cache
  // overwrites the position. A sum keeps the old position in its state: the work of the next step
  // is the same, its output is not. Do not call it twice in a row on a ring buffer, which has lost
  // the position that a step pushed out.
  void step_back();

  int64_t length() const { return length_; }  // positions appended
  int64_t capacity() const { return capacity_; }
  const std::vector<int64_t>& gate_widths() const { return gate_widths_; }
  bool keys_are_queries() const {
    return do_keys_are_queries();
  }                                                         // queries serve as keys; k is unread
  int64_t state_bytes() const { return do_state_bytes(); }  // allocated, at any length
  // The cost of the step to length() + 1 by formula; bytes are the state and weights that it reads
  // and writes. Where the data decide which keys are seen (reformer): the cost of repeating the
  // last step, or an upper bound before the first step.
  double step_flops() const { return do_step_flops(); }
  double step_bytes() const { return do_step_bytes(); }

 protected:
  // `position` is [batch, kv_heads, group, head_dim]: `group` query heads for each head of keys.
  // `gate_widths`: of each gate that a position comes with.
  Decoder(const Shape& position, int64_t capacity, std::vector<int64_t> gate_widths = {})
      : position_(position), capacity_(capacity), gate_widths_(std::move(gate_widths)) {}
  int64_t heads() const { return position_[0] * position_[1]; }  // of keys, of all batch entries
  int64_t group() const { return position_[2]; }
  int64_t head_dim() const { return position_[3]; }
  // The gates of the call that do_extend() or do_step() answers.
  std::span<const Tensor> gates() const { return gates_; }

 private:
  virtual void do_extend(const Tensor& k, const Tensor& v) = 0;  // at length()
  virtual bool do_keys_are_queries() const { return false; }     // true: do_extend gets q as k
  // q, out [heads(), group(), head_dim()], k, v [heads(), head_dim()]
  virtual void do_step(const real* q, const real* k, const real* v, real* out) = 0;
  virtual bool do_keeps_bfloat16() const { return false; }
  virtual void do_bfloat16_extend(const BFloat16Tensor& k, const BFloat16Tensor& v);
  virtual void do_bfloat16_step(const BFloat16* q, const BFloat16* k, const BFloat16* v,
                                BFloat16* out);
  virtual int64_t do_state_bytes() const = 0;
  virtual double do_step_flops() const = 0;
  virtual double do_step_bytes() const = 0;

  void check_gates(std::span<const Tensor> gates, int64_t len) const;
  template <class Array>
  void check_extension(const Array& k, const Array& v, const Array& q) const;
  template <class Array>
  void check_step(const Array& q, const Array& k, const Array& v, const Array& out) const;

  Shape position_;
  int64_t capacity_;
  int64_t length_ = 0;
  std::vector<int64_t> gate_widths_;
  std::span<const Tensor> gates_;  // during a call
};

}  // namespace attn
