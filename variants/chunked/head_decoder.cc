// See head_decoder.h.
#include "variants/chunked/head_decoder.h"

#include "core/simd/rows.h"

namespace attn {

void HeadDecoder::do_extend(const Tensor& k, const Tensor& v) {
  const int64_t len = k.dim(2), dim = head_dim();
  over_range(heads(), len * dim * dim, [&](int64_t begin, int64_t end) {
    Tally done;
    for (int64_t head = begin; head < end; ++head)
      for (int64_t i = 0; i < len; ++i)
        step_of(head, i, nullptr, k.data() + (head * len + i) * dim,
                v.data() + (head * len + i) * dim, nullptr, done);
  });
  appended_ += len;
}

void HeadDecoder::do_step(const real* q, const real* k, const real* v, real* out) {
  const int64_t dim = head_dim();
  over_range(heads(), step_work(), [&](int64_t begin, int64_t end) {
    Tally done;
    for (int64_t head = begin; head < end; ++head)
      step_of(head, 0, q + head * dim, k + head * dim, v + head * dim, out + head * dim, done);
  });
  ++appended_;
}

}  // namespace attn
