// Between the layer's rows and the heads of an attention; see mixer.h. Costs what the mixer costs,
// and where there are several heads one copy each way for a caller that has split them.
#include "variants/api/mixer.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/ops/ops.h"

namespace attn {

void Mixer::check_input(const Var& x, const Mask& mask) const {
  ATTN_CHECK(x.defined() && x.shape().rank() == 3 && x.dim(2) == width(),
             "a mixer of width {} takes [batch, len, width], got {}", width(),
             x.defined() ? x.shape().str() : "nothing");
  check_mask(mask, x.dim(0), x.dim(1), x.dim(1));
}

Var Mixer::mix(const Var& x, const Mask& mask) const {
  check_input(x, mask);
  Var out = do_mix(x, mask);
  ATTN_CHECK(out.shape() == x.shape(), "a mixer returned {} for {}", out.shape().str(),
             x.shape().str());
  return out;
}

BFloat16Tensor Mixer::mix(const BFloat16Tensor& x, const Mask& mask) const {
  ATTN_CHECK(x.defined(), "a mixer of width {} takes [batch, len, width], got nothing", width());
  const NoGrad no_grad;
  const Tensor wide = mix(Var(widened(x)), mask).value();  // what was widened is freed
  return rounded(wide);
}

Var Mixer::do_forward(const Var&, const Var&, const Var& v, const Mask& mask) const {
  if (v.dim(1) == 1)
    return reshape(do_mix(reshape(v, {v.dim(0), v.dim(2), v.dim(3)}), mask), v.shape());
  return split_heads(do_mix(merge_heads(v), mask), v.dim(1));
}

const Mixer* as_mixer(const Attention& attention) { return dynamic_cast<const Mixer*>(&attention); }

void MixerDecoder::do_extend(const Tensor&, const Tensor& v) {
  const int64_t count = heads() / batch_, len = v.dim(2), dim = head_dim();
  const Tensor row({batch_, width()});
  for (int64_t i = 0; i < len; ++i) {
    for (int64_t head = 0; head < batch_ * count; ++head)
      std::copy_n(v.data() + (head * len + i) * dim, dim, row.data() + head * dim);
    ahead_ = i;
    do_next(row.data(), nullptr);
  }
  ahead_ = 0;
}

void MixerDecoder::do_step(const real*, const real*, const real* v, real* out) { do_next(v, out); }

}  // namespace attn
