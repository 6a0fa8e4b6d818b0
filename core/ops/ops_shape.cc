// Ops that rearrange elements. Each makes one copy; reshape makes none.
#include <algorithm>
#include <vector>

#include "core/autograd/tape.h"
#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// A shape seen as [outer, dim, inner].
struct Slice {
  int64_t outer = 1, size = 1, inner = 1;
};

int axis(const char* name, const Shape& shape, int dim) {
  const int at = dim < 0 ? dim + shape.rank() : dim;
  ATTN_CHECK(at >= 0 && at < shape.rank(), "{}: dimension {} of {}", name, dim, shape.str());
  return at;
}

Slice cut(const Shape& shape, int at) {
  Slice result;
  for (int i = 0; i < at; i++) result.outer *= shape[i];
  result.size = shape[at];
  for (int i = at + 1; i < shape.rank(); i++) result.inner *= shape[i];
  return result;
}

// Copies (or adds) `outer` runs of `run` numbers between two strides.
void copy_runs(real* to, int64_t to_stride, const real* from, int64_t from_stride, int64_t outer,
               int64_t run, bool accumulate = false) {
  over_range(outer, run, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      real* target = to + i * to_stride;
      const real* source = from + i * from_stride;
      if (accumulate)
        for (int64_t j = 0; j < run; j++) target[j] += source[j];
      else
        std::copy(source, source + run, target);
    }
  });
}

// [outer, m, n, run] -> [outer, n, m, run]
void swap_middle(real* to, const real* from, int64_t outer, int64_t m, int64_t n, int64_t run) {
  constexpr int64_t kSquare = 16;  // a tile of rows and columns stays in the first-level cache
  over_range(outer, m * n * run, [=](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; o++) {
      const real* source = from + o * m * n * run;
      real* target = to + o * m * n * run;
      if (run > 1) {
        for (int64_t j = 0; j < n; j++)
          for (int64_t i = 0; i < m; i++)
            std::copy_n(source + (i * n + j) * run, run, target + (j * m + i) * run);
        continue;
      }
      for (int64_t i0 = 0; i0 < m; i0 += kSquare)
        for (int64_t j0 = 0; j0 < n; j0 += kSquare)
          for (int64_t j = j0; j < std::min(n, j0 + kSquare); j++)
            for (int64_t i = i0; i < std::min(m, i0 + kSquare); i++)
              target[j * m + i] = source[i * n + j];
    }
  });
}

// An op that swaps two neighbouring dimensions of [outer, m, n, run]; its backward swaps them back.
Var swapped(const Var& a, Shape shape, int64_t outer, int64_t m, int64_t n, int64_t run) {
  const Tensor out(shape);
  swap_middle(out.data(), a.value().data(), outer, m, n, run);
  return record_op(out, {&a, 1}, [=](const Tensor& g, std::span<GradSlot> in) {
    const Tensor back(in[0].shape());
    swap_middle(back.data(), g.data(), outer, n, m, run);
    in[0].give(back);
  });
}

}  // namespace

Var reshape(const Var& a, Shape shape) {
  return record_op(a.value().reshaped(shape), {&a, 1}, [](const Tensor& g, std::span<GradSlot> in) {
    in[0].give(g.reshaped(in[0].shape()));
  });
}

Var slice(const Var& a, int dim, int64_t begin, int64_t end) {
  const int at = axis("slice", a.shape(), dim);
  ATTN_CHECK(begin >= 0 && begin <= end && end <= a.dim(at),
             "slice: [{}, {}) of dimension {} of {}", begin, end, dim, a.shape().str());
  const Slice whole = cut(a.shape(), at);
  const int64_t stride = whole.size * whole.inner, run = (end - begin) * whole.inner;
  const int64_t offset = begin * whole.inner;
  const Tensor out(a.shape().with(at, end - begin));
  copy_runs(out.data(), run, a.value().data() + offset, stride, whole.outer, run);
  return record_op(out, {&a, 1}, [=](const Tensor& g, std::span<GradSlot> in) {
    copy_runs(in[0].sum().data() + offset, stride, g.data(), run, whole.outer, run, true);
  });
}

Var concat(std::span<const Var> parts, int dim) {
  ATTN_CHECK(!parts.empty(), "concat of nothing");
  const int at = axis("concat", parts[0].shape(), dim);
  int64_t total = 0;
  for (const Var& part : parts) {
    const bool fits = part.shape().rank() == parts[0].shape().rank() &&
                      part.shape().with(at, 0) == parts[0].shape().with(at, 0);
    ATTN_CHECK(fits, "concat along {}: {} and {}", dim, parts[0].shape().str(), part.shape().str());
    total += part.dim(at);
  }
  const Tensor out(parts[0].shape().with(at, total));
  const Slice whole = cut(out.shape(), at);
  const int64_t stride = whole.size * whole.inner;
  std::vector<int64_t, Recycled<int64_t>> runs;  // the slot of a constant does not know its shape
  int64_t offset = 0;
  for (const Var& part : parts) {
    runs.push_back(part.dim(at) * whole.inner);
    copy_runs(out.data() + offset, stride, part.value().data(), runs.back(), whole.outer,
              runs.back());
    offset += runs.back();
  }
  return record_op(out, parts, [=](const Tensor& g, std::span<GradSlot> in) {
    int64_t from = 0;
    for (size_t i = 0; i < in.size(); from += runs[i++]) {
      if (!in[i].needed()) continue;
      bool accumulate = false;
      const Tensor& to = in[i].target(accumulate);
      copy_runs(to.data(), runs[i], g.data() + from, stride, whole.outer, runs[i], accumulate);
    }
  });
}

Var transpose_last(const Var& a) {
  ATTN_CHECK(a.shape().rank() >= 2, "transpose_last: {}", a.shape().str());
  const int64_t m = a.dim(-2), n = a.dim(-1);
  const int64_t outer = m * n > 0 ? a.value().size() / (m * n) : 0;
  return swapped(a, a.shape().with(-2, n).with(-1, m), outer, m, n, 1);
}

Var split_heads(const Var& a, int64_t heads) {
  const bool fits = a.shape().rank() == 3 && heads >= 1 && a.dim(2) % heads == 0;
  ATTN_CHECK(fits, "split_heads: {} into {}", a.shape().str(), heads);
  const int64_t batch = a.dim(0), len = a.dim(1), dim = a.dim(2) / heads;
  return swapped(a, {batch, heads, len, dim}, batch, len, heads, dim);
}

Var merge_heads(const Var& a) {
  ATTN_CHECK(a.shape().rank() == 4, "merge_heads: {}", a.shape().str());
  const int64_t batch = a.dim(0), heads = a.dim(1), len = a.dim(2), dim = a.dim(3);
  return swapped(a, {batch, len, heads * dim}, batch, heads, len, dim);
}

}  // namespace attn
