// Segment means and pseudo-inverses, a head at a time; see landmarks.h. The backward of the
// iteration keeps Z before each step and computes the rest of the step again.
#include "variants/lowrank/landmarks.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/blocked_product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

struct Segments {
  int64_t heads_of_entry, len, dim, count;
  std::vector<int64_t, Recycled<int64_t>> lengths;

  int64_t length(int64_t head) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(head / heads_of_entry)];
  }
  int64_t used(int64_t head) const { return std::min(count, length(head)); }
  // body(segment, its first row, its rows) of one head.
  template <class Body>
  void each(int64_t head, const Body& body) const {
    const int64_t used_here = used(head), n = length(head);
    for (int64_t s = 0; s < used_here; ++s) {
      const int64_t first = s * n / used_here;
      body(s, first, (s + 1) * n / used_here - first);
    }
  }
};

// One matrix of the iteration, in a workspace of five.
struct Step {
  int64_t m;
  const real* weights;
  real *az, *second, *third, *work;

  static int64_t reals(int64_t m) {
    return 3 * padded_reals(m * m) + std::max(blocked_product_reals(m, m, m, {nullptr, m, 1}),
                                              blocked_product_reals(m, m, m, {nullptr, 1, m}));
  }
  Step(int64_t size, const real* of, real* space)
      : m(size),
        weights(of),
        az(space),
        second(az + padded_reals(m * m)),
        third(second + padded_reals(m * m)),
        work(third + padded_reals(m * m)) {}

  Left plain(const real* x) const { return {x, m, 1}; }
  Left turned(const real* x) const { return {x, 1, m}; }
  void multiply(Left a, Left b, real* to, bool accumulate = false) const {
    blocked_product(m, m, m, a, b, to, m, accumulate, work);
  }
  // to = diagonal - az·x; x null: the identity.
  void subtract_from(real diagonal, const real* x, real* to) const {
    if (x)
      multiply(plain(az), plain(x), to);
    else
      std::copy_n(az, m * m, to);
    for (int64_t i = 0; i < m * m; ++i) to[i] = -to[i];
    for (int64_t i = 0; i < m; ++i) to[i * (m + 1)] += diagonal;
  }
  void prepare(const real* z) const {  // az, second = 15 - az·(7 - az), third = 13 - az·second
    multiply(plain(weights), plain(z), az);
    subtract_from(7, nullptr, third);
    subtract_from(15, third, second);
    subtract_from(13, second, third);
  }
  void advance(const real* z, real* next) const {
    prepare(z);
    multiply(plain(z), plain(third), next);
    for (int64_t i = 0; i < m * m; ++i) next[i] *= real(0.25);
  }
};

struct Norm {
  real largest = 0;
  int64_t column = 0;
};

Norm column_norm(const real* weights, int64_t m, real* sums) {
  std::fill_n(sums, m, real(0));
  add_column_sums(sums, weights, m, m);
  Norm norm;
  for (int64_t j = 0; j < m; ++j)
    if (sums[j] > norm.largest) norm = {sums[j], j};
  return norm;
}

void start(const real* weights, int64_t m, real* sums, real* z) {
  const Norm norm = column_norm(weights, m, sums);
  const real factor = norm.largest > 0 ? 1 / norm.largest : real(0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < m; ++j) z[j * m + i] = factor * weights[i * m + j];
}

// grad: of the start Z; adds to `to`.
void start_backward(const real* weights, int64_t m, real* sums, const real* grad, real* to) {
  const Norm norm = column_norm(weights, m, sums);
  if (!(norm.largest > 0)) return;
  const real factor = 1 / norm.largest;
  real along = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < m; ++j) {
      along += grad[j * m + i] * weights[i * m + j];
      to[i * m + j] += factor * grad[j * m + i];
    }
  for (int64_t i = 0; i < m; ++i) to[i * m + norm.column] -= along * factor * factor;
}

// The gradients of one step: `grad` of its result becomes that of its z.
struct StepBack {
  const Step& step;
  real *outer, *inner, *of_az;  // workspace

  static int64_t reals(int64_t m) { return 3 * padded_reals(m * m); }
  void run(const real* z, real* grad, real* to) const {
    const int64_t size = step.m * step.m;
    step.prepare(z);
    step.multiply(step.turned(z), step.plain(grad), outer);  // of third
    for (int64_t i = 0; i < size; ++i) outer[i] *= real(0.25);
    step.multiply(step.plain(grad), step.turned(step.third), inner);
    for (int64_t i = 0; i < size; ++i) grad[i] = real(0.25) * inner[i];
    step.multiply(step.plain(outer), step.turned(step.second), of_az);
    step.multiply(step.turned(step.az), step.plain(outer), inner);  // minus the one of second
    step.subtract_from(7, nullptr, step.third);
    for (int64_t i = 0; i < size; ++i) inner[i] = -inner[i];
    step.multiply(step.plain(inner), step.turned(step.third), of_az, true);
    step.multiply(step.turned(step.az), step.plain(inner), outer);  // minus the one of 7 - az
    for (int64_t i = 0; i < size; ++i) of_az[i] = outer[i] - of_az[i];
    step.multiply(step.plain(of_az), step.turned(z), to, true);
    step.multiply(step.turned(step.weights), step.plain(of_az), grad, true);
  }
};

}  // namespace

Var segment_means(const Var& x, int64_t count, std::span<const int64_t> lengths) {
  const Segments s{x.dim(1), x.dim(2), x.dim(3), count, {lengths.begin(), lengths.end()}};
  const Tensor rows = x.value(), out(x.shape().with(2, count));
  run_tasks(x.dim(0) * x.dim(1), 0, [&](int64_t head, real*) {
    const Mark mark(Part::gathering);
    real* const to = out.data() + head * count * s.dim;
    std::fill_n(to, count * s.dim, real(0));
    s.each(head, [&](int64_t segment, int64_t first, int64_t size) {
      real* const mean = to + segment * s.dim;
      add_column_sums(mean, rows.data() + (head * s.len + first) * s.dim, size, s.dim);
      for (int64_t c = 0; c < s.dim; ++c) mean[c] /= static_cast<real>(size);
    });
  });
  return custom_op(out, {x}, [s](const Tensor& grad, std::span<Tensor> grads) {
    run_tasks(grad.dim(0) * grad.dim(1), 0, [&](int64_t head, real*) {
      s.each(head, [&](int64_t segment, int64_t first, int64_t size) {
        const real* const from = grad.data() + (head * s.count + segment) * s.dim;
        real* to = grads[0].data() + (head * s.len + first) * s.dim;
        for (int64_t i = 0; i < size; ++i, to += s.dim)
          for (int64_t c = 0; c < s.dim; ++c) to[c] += from[c] / static_cast<real>(size);
      });
    });
  });
}

int64_t iterated_inverse_bytes(int64_t matrices, int64_t m) {
  return workspace_bytes(matrices, Step::reals(m) + 2 * padded_reals(m * m));
}

double iterated_inverse_flops(int64_t m, int64_t steps) {
  return 8 * static_cast<double>(steps) * static_cast<double>(m * m * m);
}
double iterated_inverse_backward_flops(int64_t m, int64_t steps) {
  return 22 * static_cast<double>(steps) * static_cast<double>(m * m * m);
}

Var iterated_inverse(const Var& weights, int64_t steps) {
  const Tensor a = weights.value(), out(weights.shape());
  const int64_t m = a.dim(3), size = m * m, matrices = a.dim(0) * a.dim(1);
  const bool keep = recording({weights});
  const Tensor starts = keep ? Tensor({matrices, steps, m, m}) : Tensor();  // Z before each step
  run_tasks(matrices, Step::reals(m) + 2 * padded_reals(size), [&](int64_t matrix, real* space) {
    const Mark mark(Part::products);
    const Step step(m, a.data() + matrix * size, space + 2 * padded_reals(size));
    real* turn[2] = {space, space + padded_reals(size)};
    start(step.weights, m, step.az, turn[0]);
    for (int64_t t = 0; t < steps; ++t) {
      if (keep) std::copy_n(turn[t % 2], size, starts.data() + (matrix * steps + t) * size);
      step.advance(turn[t % 2], turn[(t + 1) % 2]);
    }
    std::copy_n(turn[steps % 2], size, out.data() + matrix * size);
    count_flops(iterated_inverse_flops(m, steps));
  });
  if (!keep) return Var(out);
  return custom_op(out, {weights}, [=](const Tensor& grad, std::span<Tensor> grads) {
    const int64_t reals = Step::reals(m) + StepBack::reals(m) + padded_reals(size);
    run_tasks(matrices, reals, [&](int64_t matrix, real* space) {
      const Mark mark(Part::products);
      real* const rest = space + StepBack::reals(m) + padded_reals(size);
      const Step step(m, a.data() + matrix * size, rest);
      const StepBack back{step, space, space + padded_reals(size), space + 2 * padded_reals(size)};
      real* const of_z = space + 3 * padded_reals(size);
      real* const to = grads[0].data() + matrix * size;
      std::copy_n(grad.data() + matrix * size, size, of_z);
      for (int64_t t = steps; t-- > 0;)
        back.run(starts.data() + (matrix * steps + t) * size, of_z, to);
      start_backward(step.weights, m, step.az, of_z, to);
      count_flops(iterated_inverse_backward_flops(m, steps));
    });
  });
}

}  // namespace attn
