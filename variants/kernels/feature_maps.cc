// Feature maps as fused ops: 2·n·m·d FLOPs a projection on m directions, one row block a task,
// nothing kept but φ itself.
#include "variants/kernels/feature_maps.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/counters.h"
#include "core/eigen.h"
#include "core/kernels/exp.h"
#include "variants/kernels/workers.h"

namespace attn {
namespace {

constexpr int64_t kRows =
    256;  // of a task: a block of 256 features or so stays in the second-level cache

struct Rows {
  int64_t head = 0;   // batch·heads + head
  int64_t at = 0;     // first row, counted over all heads
  int64_t count = 0;  // valid ones; those of the block behind them are padding
  int64_t padded = 0;
};

// body(rows, workspace) over blocks of rows of x = [batch, heads, len, ..].
template <class Body>
void for_rows(const Shape& x, Lengths lengths, int64_t reals, const Body& body) {
  const int64_t heads = x[1], len = x[2], blocks = (len + kRows - 1) / kRows;
  run_tasks(x[0] * heads * blocks, reals, [&](int64_t task, real* work) {
    const int64_t head = task / blocks, first = task % blocks * kRows,
                  last = std::min(len, first + kRows);
    const int64_t valid = lengths.empty() ? len : lengths[static_cast<size_t>(head / heads)];
    const int64_t count = std::clamp<int64_t>(valid - first, 0, last - first);
    body(Rows{head, head * len + first, count, last - first - count}, work);
  });
}

MatrixMap rows_of(const Tensor& x, const Rows& r) {
  return map(x.data() + r.at * x.dim(3), r.count, x.dim(3));
}

void zero_padded(const Tensor& x, const Rows& r) {
  std::fill_n(x.data() + (r.at + r.count) * x.dim(3), r.padded * x.dim(3), real(0));
}

// The directions of one head: omega is [heads or 1, features, dim].
MatrixMap directions(const Tensor& omega, const Tensor& x, int64_t head) {
  return matrix(omega, omega.dim(0) == 1 ? 0 : head % x.dim(1));
}

Tensor check_and_allocate(const Tensor& x, const Tensor& omega) {
  ATTN_CHECK(omega.shape().rank() == 3 && omega.dim(2) == x.dim(3) &&
                 (omega.dim(0) == 1 || omega.dim(0) == x.dim(1)),
             "directions {} do not fit {}", omega.shape().str(), x.shape().str());
  return Tensor(x.shape().with(3, omega.dim(1)));
}

double projection_flops(const Rows& r, const Tensor& omega) {
  return 2 * static_cast<double>(r.count) * static_cast<double>(omega.dim(1) * omega.dim(2));
}

// Loops on plain pointers and values: through captured references they do not vectorise.
void elu_plus_one(const real* x, real* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i)
    out[i] = fast_exp(x[i] < 0 ? x[i] : real(0)) + (x[i] < 0 ? real(0) : x[i]);
}

// x becomes exp(factor·x - top) and top, its largest exponent, is returned.
real stable_exp(real* x, int64_t size, real factor) {
  const real top = factor * RowMap(x, size).maxCoeff<Eigen::PropagateNaN>();
  for (int64_t i = 0; i < size; ++i) x[i] = fast_exp(factor * x[i] - top);
  return top;
}

void relu_plus(real* x, int64_t size, real floor) {
  for (int64_t i = 0; i < size; ++i) x[i] = (x[i] < 0 ? real(0) : x[i]) + floor;
}

}  // namespace

Var elu_features(const Var& x, Lengths lengths) {
  const Tensor xt = x.value(), phi(xt.shape());
  for_rows(xt.shape(), lengths, 0, [&](const Rows& r, real*) {
    const int64_t at = r.at * xt.dim(3);
    elu_plus_one(xt.data() + at, phi.data() + at, r.count * xt.dim(3));
    zero_padded(phi, r);
  });
  if (!recording({x})) return Var(phi);
  const std::vector<int64_t> kept(lengths.begin(), lengths.end());
  return custom_op(phi, {x}, [phi, kept](const Tensor& grad, std::span<Tensor> grads) {
    for_rows(phi.shape(), kept, 0, [&](const Rows& r, real*) {
      const int64_t at = r.at * phi.dim(3), size = r.count * phi.dim(3);
      const ConstRowMap slope(phi.data() + at, size), from(grad.data() + at, size);
      RowMap(grads[0].data() + at, size) += from * slope.min(real(1));  // e^x, then 1
    });
  });
}

PositiveFeatures positive_features(const Var& x, const Var& omega, double scale, Lengths lengths) {
  const Tensor xt = x.value(), wt = omega.value(), phi = check_and_allocate(xt, wt);
  const Tensor log_scale({xt.dim(0), xt.dim(1), xt.dim(2)});
  const real factor = real(scale);
  for_rows(xt.shape(), lengths, 0, [&](const Rows& r, real*) {
    const MatrixMap in = rows_of(xt, r);
    MatrixMap out = rows_of(phi, r);
    out.noalias() = in * directions(wt, xt, r.head).transpose();
    for (int64_t i = 0; i < r.count; ++i) {
      const real top = stable_exp(out.data() + i * phi.dim(3), phi.dim(3), factor);
      log_scale[r.at + i] = top - factor * factor * in.row(i).squaredNorm() / 2;
    }
    zero_padded(phi, r);
    std::fill_n(log_scale.data() + r.at + r.count, r.padded, -kInfinity);
    count_flops(projection_flops(r, wt));
  });
  if (!recording({x})) return {Var(phi), log_scale};
  const std::vector<int64_t> kept(lengths.begin(), lengths.end());
  // The divisor is a constant here: what it multiplies, linear_attention multiplies back.
  Var result =
      custom_op(phi, {x}, [xt, wt, phi, kept, factor](const Tensor& grad, std::span<Tensor> grads) {
        for_rows(xt.shape(), kept, kRows * phi.dim(3), [&](const Rows& r, real* work) {
          MatrixMap slope = map(work, r.count, phi.dim(3)), out = rows_of(grads[0], r);
          slope = rows_of(grad, r).cwiseProduct(rows_of(phi, r)) * factor;
          out.noalias() += slope * directions(wt, xt, r.head);
          for (int64_t i = 0; i < r.count; ++i)
            out.row(i) -= factor * slope.row(i).sum() * rows_of(xt, r).row(i);
          count_flops(projection_flops(r, wt));
        });
      });
  return {result, log_scale};
}

Var relu_features(const Var& x, const Var& omega, double epsilon, Lengths lengths) {
  const Tensor xt = x.value(), wt = omega.value(), phi = check_and_allocate(xt, wt);
  const real floor = real(epsilon);
  for_rows(xt.shape(), lengths, 0, [&](const Rows& r, real*) {
    MatrixMap out = rows_of(phi, r);
    out.noalias() = rows_of(xt, r) * directions(wt, xt, r.head).transpose();
    relu_plus(out.data(), out.size(), floor);
    zero_padded(phi, r);
    count_flops(projection_flops(r, wt));
  });
  if (!recording({x})) return Var(phi);
  const std::vector<int64_t> kept(lengths.begin(), lengths.end());
  return custom_op(phi, {x},
                   [xt, wt, phi, kept, floor](const Tensor& grad, std::span<Tensor> grads) {
                     for_rows(xt.shape(), kept, kRows * phi.dim(3), [&](const Rows& r, real* work) {
                       MatrixMap slope = map(work, r.count, phi.dim(3));
                       slope = (rows_of(phi, r).array() > floor).select(rows_of(grad, r), real(0));
                       rows_of(grads[0], r).noalias() += slope * directions(wt, xt, r.head);
                       count_flops(projection_flops(r, wt));
                     });
                   });
}

}  // namespace attn
