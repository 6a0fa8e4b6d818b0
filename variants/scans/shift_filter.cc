// Rows of a head one after the other; a task is a head of a sequence. See shift_filter.h.
#include "variants/scans/shift_filter.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

struct FilterProblem {
  int64_t total, heads, len, count, dim;

  int64_t row(int64_t head, int64_t t) const { return (head * len + t) * dim; }
  int64_t taps_of(int64_t head) const { return head % heads * count * dim; }
  const real* skip_of(const Tensor& skip, int64_t head) const {  // null: none
    return skip.defined() ? skip.data() + head % heads * dim : nullptr;
  }
  double flops() const { return static_cast<double>(total * dim) * shift_filter_flops(len, count); }
};

struct FilterTensors {
  Tensor x, taps, skip;
};

// Gradients of one head of one sequence; null where they are not asked for.
void filter_backward(const FilterProblem& p, const FilterTensors& f, int64_t head, const real* g,
                     real* of_x, real* of_taps, real* of_skip) {
  const real* const taps = f.taps.data() + p.taps_of(head);
  const real* const skip = p.skip_of(f.skip, head);
  for (int64_t t = 0; t < p.len; ++t) {
    const real* const of = g + p.row(head, t);
    const real* const x = f.x.data() + p.row(head, t);
    if (of_skip)
      for (int64_t c = 0; c < p.dim; ++c) of_skip[c] += of[c] * x[c];
    if (of_x && skip)
      for (int64_t c = 0; c < p.dim; ++c) of_x[p.row(head, t) + c] += of[c] * skip[c];
    for (int64_t j = 0; j < std::min(p.count, t + 1); ++j) {
      const real *const from = x - j * p.dim, *const tap = taps + j * p.dim;
      if (of_taps)
        for (int64_t c = 0; c < p.dim; ++c) of_taps[j * p.dim + c] += of[c] * from[c];
      if (!of_x) continue;
      real* const to = of_x + p.row(head, t - j);
      for (int64_t c = 0; c < p.dim; ++c) to[c] += of[c] * tap[c];
    }
  }
}

// to += the sums of all sequences, in their order.
void add_sequences(const Tensor& each, int64_t sequences, const Tensor& to) {
  for (int64_t b = 0; b < sequences; ++b)
    for (int64_t i = 0; i < to.size(); ++i) to[i] += each[b * to.size() + i];
}

}  // namespace

double shift_filter_flops(int64_t len, int64_t count) {
  const auto n = static_cast<double>(len), taps = static_cast<double>(std::min(len, count));
  return 2 * (n * taps - taps * (taps - 1) / 2);
}

void filter_row(int64_t count, int64_t dim, const real* last, int64_t seen, const real* taps,
                const real* skip, real* to) {
  for (int64_t c = 0; c < dim; ++c) to[c] = skip ? skip[c] * last[c] : real(0);
  for (int64_t j = 0; j < std::min(count, seen); ++j) {
    const real *const from = last - j * dim, *const tap = taps + j * dim;
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < dim; ++c) to[c] += tap[c] * from[c];
  }
}

Var shift_filter(const Var& x, const Var& taps, const Var& skip) {
  const Shape s = x.shape(), t = taps.shape();
  ATTN_CHECK(s.rank() == 4 && t.rank() == 3 && t[0] == s[1] && t[2] == s[3] &&
                 (!skip.defined() || skip.shape() == Shape({s[1], s[3]})),
             "shift filter: taps {} and skip {} beside x {}", t.str(),
             skip.defined() ? skip.shape().str() : "", s.str());
  const FilterProblem p{s[0] * s[1], s[1], s[2], t[1], s[3]};
  const FilterTensors f{x.value(), taps.value(), skip.defined() ? skip.value() : Tensor()};
  const Tensor out(s);
  {
    const Mark mark(Part::convolution);
    parallel_for(p.total, 1, [&](int64_t first, int64_t end) {
      for (int64_t head = first; head < end; ++head)
        for (int64_t at = 0; at < p.len; ++at)
          filter_row(p.count, p.dim, f.x.data() + p.row(head, at), at + 1,
                     f.taps.data() + p.taps_of(head), p.skip_of(f.skip, head),
                     out.data() + p.row(head, at));
    });
    count_flops(p.flops());
    count_bytes(sizeof(real) * static_cast<double>(2 * out.size()));
  }
  return custom_op(out, {x, taps, skip}, [p, f](const Tensor& g, std::span<Tensor> grads) {
    const Mark mark(Part::convolution);
    const int64_t sequences = p.total / p.heads, size = p.count * p.dim;
    const Tensor of_taps = Tensor::zeros({p.total, size});
    const Tensor of_skip = grads[2].defined() ? Tensor::zeros({p.total, p.dim}) : Tensor();
    parallel_for(p.total, 1, [&](int64_t first, int64_t end) {
      for (int64_t head = first; head < end; ++head)
        filter_backward(p, f, head, g.data(), grads[0].defined() ? grads[0].data() : nullptr,
                        grads[1].defined() ? of_taps.data() + head * size : nullptr,
                        of_skip.defined() ? of_skip.data() + head * p.dim : nullptr);
    });
    count_flops(2 * p.flops());
    if (grads[1].defined()) add_sequences(of_taps, sequences, grads[1]);
    if (of_skip.defined()) add_sequences(of_skip, sequences, grads[2]);
  });
}

}  // namespace attn
