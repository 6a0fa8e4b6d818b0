// See key_rows.h. Gradients of gains are summed in double, head by head.
#include "variants/chunked/key_rows.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "core/base/recycled.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

using Row = Eigen::Map<Eigen::Array<real, Eigen::Dynamic, 1>>;
using ConstRow = Eigen::Map<const Eigen::Array<real, Eigen::Dynamic, 1>>;

template <class X>
real inverse_length(const X& x) {
  return 1 / std::sqrt(x.square().sum() + static_cast<real>(kUnitEpsilon));
}

struct KeyRows {
  int64_t count, heads, len, dim;  // count: of heads of all sequences
  std::vector<int64_t, Recycled<int64_t>> lengths;

  KeyRows(const Tensor& x, const std::vector<int64_t>& valid)
      : count(x.dim(0) * x.dim(1)),
        heads(x.dim(1)),
        len(x.dim(2)),
        dim(x.dim(3)),
        lengths(valid.begin(), valid.end()) {}
  int64_t valid(int64_t head) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(head / heads)];
  }
  // Calls body(head, at) with the offset of each valid row.
  template <class Body>
  void each_row(int64_t work, const Body& body) const {
    over_range(count, work * len * dim, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head)
        for (int64_t i = 0; i < valid(head); ++i) body(head, (head * len + i) * dim);
    });
  }
  // Calls body(sums, at), which adds the row at `at` to the sums of its head, and adds the sums to
  // `grad` [heads, dim]. An undefined `grad` needs none.
  template <class Body>
  void each_sum(const Tensor& grad, const Body& body) const {
    if (!grad.defined()) return;
    over_range(heads, count / heads * 4 * len * dim, [&](int64_t begin, int64_t end) {
      std::vector<double, Recycled<double>> sums(static_cast<size_t>(dim));
      for (int64_t h = begin; h < end; ++h) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t head = h; head < count; head += heads)
          for (int64_t i = 0; i < valid(head); ++i) body(sums.data(), (head * len + i) * dim);
        for (int64_t c = 0; c < dim; ++c)
          grad[h * dim + c] += static_cast<real>(sums[static_cast<size_t>(c)]);
      }
    });
  }
};

Var unit_rows_with(const Var& x, real by, const KeyRows& rows, const Tensor& out,
                   const Var& gain_var) {
  const Tensor from = x.value(), gains = gain_var.value();
  const auto gain = [gains, rows](int64_t head) {
    return ConstRow(gains.data() + head % rows.heads * rows.dim, rows.dim);
  };
  rows.each_row(4, [&](int64_t head, int64_t at) {
    Row row(out.data() + at, rows.dim);
    row = gain(head) * ConstRow(from.data() + at, rows.dim);
    row *= by * inverse_length(row);
  });
  return custom_op(out, {x, gain_var}, [=](const Tensor& g, std::span<Tensor> grads) {
    const KeyRows& r = rows;
    const Tensor of_rows(from.shape());  // d/d(gains⊙x)
    r.each_row(8, [&](int64_t head, int64_t at) {
      Row y(of_rows.data() + at, r.dim);
      y = gain(head) * ConstRow(from.data() + at, r.dim);
      const ConstRow grad(g.data() + at, r.dim);
      const real inverse = inverse_length(y), along = inverse * inverse * (y * grad).sum();
      y = by * inverse * (grad - along * y);
      if (grads[0].defined()) Row(grads[0].data() + at, r.dim) += gain(head) * y;
    });
    r.each_sum(grads[1], [&](double* sums, int64_t at) {
      for (int64_t c = 0; c < r.dim; ++c)
        sums[c] += static_cast<double>(of_rows[at + c] * from[at + c]);
    });
  });
}

}  // namespace

Var unit_rows(const Var& x, double factor, const std::vector<int64_t>& lengths, const Var& gains) {
  const Tensor from = x.value(), out(x.shape());
  const auto by = static_cast<real>(factor);
  const KeyRows rows(from, lengths);
  for (int64_t head = 0; head < rows.count && !lengths.empty(); ++head)
    std::fill(out.data() + (head * rows.len + rows.valid(head)) * rows.dim,
              out.data() + (head + 1) * rows.len * rows.dim, real(0));
  if (gains.defined()) return unit_rows_with(x, by, rows, out, gains);
  rows.each_row(4, [&](int64_t, int64_t at) {
    const ConstRow row(from.data() + at, rows.dim);
    Row(out.data() + at, rows.dim) = by * inverse_length(row) * row;
  });
  return custom_op(out, {x}, [=](const Tensor& g, std::span<Tensor> grads) {
    if (!grads[0].defined()) return;
    rows.each_row(8, [&](int64_t, int64_t at) {
      const ConstRow row(from.data() + at, rows.dim), grad(g.data() + at, rows.dim);
      const real inverse = inverse_length(row), along = inverse * inverse * (row * grad).sum();
      Row(grads[0].data() + at, rows.dim) += by * inverse * (grad - along * row);
    });
  });
}

void unit_row(real factor, const real* gains, int64_t dim, real* row) {
  Row y(row, dim);
  if (gains) y *= ConstRow(gains, dim);
  y *= factor * inverse_length(y);
}

Var replaced_keys(const Var& k, const Var& a, const Var& gain_var) {
  const Tensor keys = k.value(), rates = a.value(), gains = gain_var.value(), out(k.shape());
  const KeyRows rows(keys, {});
  const auto gain = [gains, rows](int64_t head) {
    return gains.data() + head % rows.heads * rows.dim;
  };
  rows.each_row(2, [&](int64_t head, int64_t at) {
    const real *const x = keys.data() + at, *const rate = rates.data() + at, *const by = gain(head);
    real* const y = out.data() + at;
    for (int64_t c = 0; c < rows.dim; ++c) y[c] = x[c] * (1 + (rate[c] - 1) * by[c]);
  });
  return custom_op(out, {k, a, gain_var}, [=](const Tensor& g, std::span<Tensor> grads) {
    rows.each_row(4, [&](int64_t head, int64_t at) {
      const real *const x = keys.data() + at, *const rate = rates.data() + at,
                        *const by = gain(head), *const grad = g.data() + at;
      real *const to_k = grads[0].defined() ? grads[0].data() + at : nullptr,
                  *const to_a = grads[1].defined() ? grads[1].data() + at : nullptr;
      for (int64_t c = 0; to_k && c < rows.dim; ++c)
        to_k[c] += grad[c] * (1 + (rate[c] - 1) * by[c]);
      for (int64_t c = 0; to_a && c < rows.dim; ++c) to_a[c] += grad[c] * x[c] * by[c];
    });
    rows.each_sum(grads[2], [&](double* sums, int64_t at) {
      for (int64_t c = 0; c < rows.dim; ++c)
        sums[c] += static_cast<double>(g[at + c] * keys[at + c] * (rates[at + c] - 1));
    });
  });
}

}  // namespace attn
