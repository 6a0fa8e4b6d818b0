// M, the running maximum of the scales of keys, at the borders of all chunks of causal linear
// attention: one number a chunk, as the backward needs it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/simd/rows.h"
#include "core/tensor/tensor.h"
#include "variants/features/linear_chunks.h"

namespace attn {

class RunningMaxima {
 public:
  RunningMaxima(const LinearProblem& p, const LinearSaved& saved)
      : chunks_(p.key_chunks()), before_({p.total_heads(), chunks_ + 1}) {
    if (p.gated) after_ = Tensor({p.total_heads(), chunks_});
    for (int64_t head = 0; head < p.total_heads(); ++head) {
      real running_max = -kInfinity;
      const real* const scales = p.scaled ? saved.log_scale.data() + head * p.kv_len : nullptr;
      for (int64_t c = 0; c < chunks_; ++c) {
        before_[head * (chunks_ + 1) + c] = running_max;
        const Chunk chunk = chunk_of(p, head, c);
        if (chunk.keys > 0)
          running_max =
              scales ? std::max(running_max, max_in_row(scales + chunk.key, chunk.keys)) : real(0);
        if (!p.gated) continue;
        after_[head * chunks_ + c] = running_max;
        running_max += saved.shifts[head * chunks_ + c];
      }
      before_[head * (chunks_ + 1) + chunks_] = running_max;
    }
  }

  // M of the keys before chunk c; c = chunks: of all keys.
  real before(int64_t head, int64_t c) const { return before_[head * (chunks_ + 1) + c]; }
  // M of the keys up to the end of chunk c, before its gates move it.
  real after(int64_t head, int64_t c) const {
    return after_.defined() ? after_[head * chunks_ + c] : before(head, c + 1);
  }

 private:
  int64_t chunks_;
  Tensor before_;  // [batch·heads, chunks + 1]
  Tensor after_;   // [batch·heads, chunks]; undefined without gates
};

}  // namespace attn
