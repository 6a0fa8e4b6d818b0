// Rows over their size, with gradients; see row_scale.h. Parallel over batch × heads; the gradient
// of a gain is summed by head, then over heads in order.
#include "variants/normalisers/row_scale.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/check.h"
#include "core/base/recycled.h"
#include "core/simd/rows.h"
#include "variants/normalisers/row_gain.h"

namespace attn {
namespace {

// Adds the gradient of one row to dx, unless null, and to dgain [dim].
void add_row_grad(const RowScale& scale, const real* gain, int64_t gain_step, int64_t dim,
                  const real* x, const real* dy, real* dx, real* dgain) {
  const real by = inverse_size(scale, dim, x);
  real along = 0;
  for (int64_t c = 0; c < dim; ++c) {
    dgain[c] += dy[c] * x[c] * by;
    along += gain[c * gain_step] * dy[c] * x[c];
  }
  if (!dx) return;
  const real back = static_cast<real>(scale.factor(dim)) * by * by * along;
  for (int64_t c = 0; c < dim; ++c) dx[c] += by * (gain[c * gain_step] * dy[c] - back * x[c]);
}

}  // namespace

Var scaled_rows(const Var& x, const Var& gain, const RowScale& scale,
                std::span<const int64_t> lengths) {
  const int64_t heads = x.dim(1), len = x.dim(2), dim = x.dim(3), all = x.dim(0) * heads;
  const Gain gains(gain.defined() ? gain.value() : Tensor());
  const int64_t held = gains.values.dim(0), width = gains.values.dim(1);
  ATTN_CHECK((held == 1 || held == heads) && (width == 1 || width == dim),
             "gains {} do not fit rows {}; expected [{} or 1, {} or 1]", gains.values.shape().str(),
             x.shape().str(), heads, dim);
  std::vector<int64_t, Recycled<int64_t>> valid(static_cast<size_t>(x.dim(0)), len);
  std::copy(lengths.begin(), lengths.end(), valid.begin());
  const Tensor from = x.value(), to(x.shape());
  over_range(all, len * dim, [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) {
      const int64_t rows = valid[static_cast<size_t>(h / heads)];
      for (int64_t row = h * len; row < h * len + rows; ++row)
        scale_row(scale, gains, h % heads, dim, 1, from.data() + row * dim, to.data() + row * dim);
      std::fill(to.data() + (h * len + rows) * dim, to.data() + (h + 1) * len * dim, real(0));
    }
  });
  const auto backward = [=](const Tensor& g, std::span<Tensor> grads) {
    const Tensor sums = Tensor::zeros({std::max<int64_t>(1, all), dim});
    over_range(all, 2 * len * dim, [&](int64_t begin, int64_t end) {
      for (int64_t h = begin; h < end; ++h)
        for (int64_t row = h * len; row < h * len + valid[static_cast<size_t>(h / heads)]; ++row)
          add_row_grad(scale, gains.of(h % heads), gains.step, dim, from.data() + row * dim,
                       g.data() + row * dim,
                       grads[0].defined() ? grads[0].data() + row * dim : nullptr,
                       sums.data() + h * dim);
    });
    if (grads.size() < 2 || !grads[1].defined()) return;
    for (int64_t h = 0; h < all; ++h)
      for (int64_t c = 0; c < dim; ++c)
        grads[1][h % heads * gains.head_step + c * gains.step] += sums[h * dim + c];
  };
  return gain.defined() ? custom_op(to, {x, gain}, backward) : custom_op(to, {x}, backward);
}

}  // namespace attn
