// Decoding: one position after the other, answered from the state of those before it.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace attn {

// Decoding: the state of batch × heads sequences of one length, and one position at a time after
// it. Equal to causal forward, row by row. Query heads may share the keys, the values and the state
// of fewer heads: query head h has those of head h / (heads / kv_heads), as in multi-query and
// grouped-query attention (arXiv:1911.02150, arXiv:2305.13245). Not recorded; not for two threads
// at once.
class Decoder {
 public:
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // k, v [batch, kv_heads, len, head_dim]: appends len positions that nobody asks. Their queries
  // q [batch, heads, len, head_dim] are read where keys_are_queries(), and may be left out
  // elsewhere.
  void extend(const Tensor& k, const Tensor& v, const Tensor& q = {});
  // q, out [batch, heads, 1, head_dim], k, v [batch, kv_heads, 1, head_dim]: appends one position
  // and answers its queries. `out` must not overlap q, k or v.
  void step(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out);
  // The next step takes the place of the last one: the same step again and again, for the clock. A
  // cache overwrites that position; a sum cannot take it back, and only its work stays the same.
  // Twice in a row only where nothing is forgotten: a ring has lost what a step pushed out.
  void step_back();

  int64_t length() const { return length_; }  // positions appended
  int64_t capacity() const { return capacity_; }
  bool keys_are_queries() const { return do_keys_are_queries(); }  // as in reformer: k is not read
  int64_t state_bytes() const { return do_state_bytes(); }         // held, whatever the length is
  // By formula, of a step to length() + 1; bytes are the state it reads and writes, and weights.
  // Where the data say who is seen, as in reformer: of the last step made again; before any, the
  // most that it can be.
  double step_flops() const { return do_step_flops(); }
  double step_bytes() const { return do_step_bytes(); }

 protected:
  // `position` is [batch, kv_heads, group, head_dim]: `group` query heads for each head of keys.
  Decoder(const Shape& position, int64_t capacity) : position_(position), capacity_(capacity) {}
  int64_t heads() const { return position_[0] * position_[1]; }  // of keys, of all batch entries
  int64_t group() const { return position_[2]; }
  int64_t head_dim() const { return position_[3]; }

 private:
  virtual void do_extend(const Tensor& k, const Tensor& v) = 0;  // at length()
  virtual bool do_keys_are_queries() const { return false; }     // true: do_extend gets q as k
  // q, out [heads(), group(), head_dim()], k, v [heads(), head_dim()]
  virtual void do_step(const real* q, const real* k, const real* v, real* out) = 0;
  virtual int64_t do_state_bytes() const = 0;
  virtual double do_step_flops() const = 0;
  virtual double do_step_bytes() const = 0;

  Shape position_;
  int64_t capacity_;
  int64_t length_ = 0;
};

}  // namespace attn
