// One pass over the rows of all branches; see gated_branches.h.
#include "variants/selection/gated_branches.h"

#include "core/base/marks.h"
#include "core/simd/row_ops.h"
#include "core/simd/rows.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

struct Rows {
  std::array<Tensor, kBranches> branches;
  Tensor gates;
  IndexList lengths;

  int64_t count() const { return gates.size() / kBranches; }
  bool is_valid(int64_t row) const {
    const int64_t len = gates.dim(2), entry = row / len / gates.dim(1);
    return lengths.empty() || row % len < lengths[static_cast<size_t>(entry)];
  }
  std::array<real, kBranches> factors(int64_t row) const {
    std::array<real, kBranches> of = {};
    if (is_valid(row)) sigmoid_row(kBranches, gates.data() + row * kBranches, of.data());
    return of;
  }
};

void forward(const Rows& x, const Tensor& out) {
  const int64_t d = out.dim(3);
  over_range(x.count(), 4 * d, [&](int64_t begin, int64_t end) {
    const Mark mark(Part::elementwise);
    for (int64_t row = begin; row < end; ++row) {
      real* const to = out.data() + row * d;
      const auto factors = x.factors(row);
      const real *const a = x.branches[0].data() + row * d,
                        *const b = x.branches[1].data() + row * d,
                        *const c = x.branches[2].data() + row * d;
      for (int64_t j = 0; j < d; ++j)
        to[j] = factors[0] * a[j] + factors[1] * b[j] + factors[2] * c[j];
    }
  });
}

void backward(const Rows& x, const Tensor& grad, std::span<Tensor> grads) {
  const int64_t d = grad.dim(3);
  over_range(x.count(), 8 * d, [&](int64_t begin, int64_t end) {
    const Mark mark(Part::elementwise);
    for (int64_t row = begin; row < end; ++row) {
      if (!x.is_valid(row)) continue;
      const auto factors = x.factors(row);
      const real* const from = grad.data() + row * d;
      for (size_t b = 0; b < kBranches; ++b) {
        const auto at = static_cast<int64_t>(b);
        if (grads[b].defined()) {
          real* const to = grads[b].data() + row * d;
          for (int64_t j = 0; j < d; ++j) to[j] += factors[b] * from[j];
        }
        if (grads[kBranches].defined())
          grads[kBranches][row * kBranches + at] +=
              factors[b] * (1 - factors[b]) * row_dot(from, x.branches[b].data() + row * d, d);
      }
    }
  });
}

}  // namespace

Var gated_branches(const std::array<Var, kBranches>& branches, const Var& gates,
                   const std::vector<int64_t>& lengths) {
  Rows x;
  for (size_t b = 0; b < kBranches; ++b) x.branches[b] = branches[b].value();
  x.gates = gates.value();
  x.lengths.assign(lengths.begin(), lengths.end());
  const Tensor out(x.branches[0].shape());
  forward(x, out);
  return custom_op(out, {branches[0], branches[1], branches[2], gates},
                   [x](const Tensor& grad, std::span<Tensor> grads) { backward(x, grad, grads); });
}

}  // namespace attn
