// See ops_gated_norm.h. A row stays in the first-level cache from the skip to the gate. The
// backward pass computes the row again, so that a training keeps the inputs alone.
#include "core/ops/ops_gated_norm.h"

#include <array>
#include <cmath>
#include <span>

#include "core/autograd/tape.h"
#include "core/base/check.h"
#include "core/base/marks.h"
#include "core/ops/row_pieces.h"
#include "core/ops/silu_rows.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// Places of the inputs, which are null where they are not defined.
enum Input : size_t { kX, kSkipped, kSkip, kGain, kShift, kGate, kInputs };

// Of GatedNorm, ready for loops.
struct Pass {
  std::array<Tensor, kInputs> of;
  GatedNorm::Norm norm;
  GatedNorm::Activation activation;
  bool gate_first;
  int64_t rows, width, segment;
  real epsilon;

  const real* row(Input input, int64_t index) const {
    return of[input].defined() ? of[input].data() + index * width : nullptr;
  }
  const real* numbers(Input input, int64_t from) const {  // of a segment that begins at `from`
    if (!of[input].defined()) return nullptr;
    return of[input].data() + (of[input].size() == width ? from : 0);
  }
};

// Rows of one thread. What a pass does not need stays as it was.
struct Scratch {
  explicit Scratch(int64_t width)
      : all({5, width}),
        sum(all.data()),
        factor(sum + width),
        normed(factor + width),
        first(normed + width),
        second(first + width) {}
  Tensor all;
  real *sum, *factor, *normed, *first, *second;
  const real* before = nullptr;  // what the gate multiplies: `sum`, or x where nothing is added
};

// factor = silu(gate) or σ(gate).
void activate(const Pass& p, const real* gate, real* factor) {
  const bool is_silu = p.activation == GatedNorm::Activation::silu;
  (is_silu ? silu_row : sigmoid_row)(p.width, gate, factor);
}

// to = g · factor'(gate); `to` is neither gate nor g.
void activation_gradient(const Pass& p, const real* gate, const real* g, real* to) {
  if (p.activation == GatedNorm::Activation::silu) return silu_gradient(p.width, gate, g, to);
  sigmoid_row(p.width, gate, to);
  for (int64_t j = 0; j < p.width; ++j) to[j] = g[j] * to[j] * (1 - to[j]);
}

// What the norm reads: the sum with the skip, times the gate where that comes first. Sets `before`,
// the row before the gate, and returns the row after it, which `normed` may hold.
const real* before_norm(const Pass& p, int64_t row, Scratch& s) {
  const real *const x = p.row(kX, row), *const skipped = p.row(kSkipped, row),
                    *const gate = p.row(kGate, row);
  s.before = x;
  if (skipped) {
    const real* const skip = p.of[kSkip].data();
    for (int64_t j = 0; j < p.width; ++j) s.sum[j] = x[j] + skip[j] * skipped[j];
    s.before = s.sum;
  }
  if (gate) activate(p, gate, s.factor);
  if (!gate || !p.gate_first) return s.before;
  for (int64_t j = 0; j < p.width; ++j) s.normed[j] = s.before[j] * s.factor[j];
  return s.normed;
}

// to = the segment less its mean, over its deviation or root mean square; returns 1 over that. `to`
// may be `from`.
real normalise(const Pass& p, const real* from, real* to) {
  const int64_t n = p.segment;
  const real mean =
      p.norm == GatedNorm::Norm::layer ? sum_in_row(from, n) / static_cast<real>(n) : 0;
  for (int64_t j = 0; j < n; ++j) to[j] = from[j] - mean;
  const real inverse = 1 / std::sqrt(row_dot(to, to, n) / static_cast<real>(n) + p.epsilon);
  for (int64_t j = 0; j < n; ++j) to[j] *= inverse;
  return inverse;
}

void forward_row(const Pass& p, int64_t row, Scratch& s, real* to) {
  const real* const from = before_norm(p, row, s);
  if (p.norm == GatedNorm::Norm::none) {
    std::copy_n(from, p.width, to);
  } else {
    for (int64_t begin = 0; begin < p.width; begin += p.segment) {
      normalise(p, from + begin, to + begin);
      if (const real* const gain = p.numbers(kGain, begin))
        for (int64_t j = 0; j < p.segment; ++j) to[begin + j] *= gain[j];
      if (const real* const shift = p.numbers(kShift, begin))
        for (int64_t j = 0; j < p.segment; ++j) to[begin + j] += shift[j];
    }
  }
  if (!p.of[kGate].defined() || p.gate_first) return;
  for (int64_t j = 0; j < p.width; ++j) to[j] *= s.factor[j];
}

// Where the gradients of a row go; null where they are not needed. gain, shift and skip are sums
// [width] of a piece.
struct RowGradients {
  real *x, *skipped, *gate, *gain, *shift, *skip;
};

// g = the gradient of what the norm read, of the gradient g behind gain and shift.
void norm_gradient(const Pass& p, real inverse, const real* normed, real* g) {
  const real count = static_cast<real>(p.segment);
  const real mean = p.norm == GatedNorm::Norm::layer ? sum_in_row(g, p.segment) / count : 0;
  const real along = row_dot(g, normed, p.segment) / count;
  for (int64_t j = 0; j < p.segment; ++j) g[j] = inverse * (g[j] - mean - normed[j] * along);
}

void backward_row(const Pass& p, int64_t row, const real* g, Scratch& s, const RowGradients& to) {
  const int64_t width = p.width;
  const real* const gate = p.row(kGate, row);
  const real* const from = before_norm(p, row, s);
  const bool gate_last = gate && !p.gate_first;
  real *const down = s.first, *const of_gate = s.second;  // gradients on their way down
  for (int64_t j = 0; j < width; ++j) down[j] = gate_last ? g[j] * s.factor[j] : g[j];
  if (p.norm == GatedNorm::Norm::none) {
    if (gate_last)
      for (int64_t j = 0; j < width; ++j) of_gate[j] = g[j] * from[j];
  } else {
    for (int64_t begin = 0; begin < width; begin += p.segment) {
      real *const normed = s.normed + begin, *const part = down + begin;
      const real inverse = normalise(p, from + begin, normed);
      const real *const gain = p.numbers(kGain, begin), *const shift = p.numbers(kShift, begin);
      for (int64_t j = 0; gate_last && j < p.segment; ++j)
        of_gate[begin + j] =
            g[begin + j] * (normed[j] * (gain ? gain[j] : 1) + (shift ? shift[j] : 0));
      if (to.gain)
        for (int64_t j = 0; j < p.segment; ++j) to.gain[begin + j] += part[j] * normed[j];
      if (to.shift)
        for (int64_t j = 0; j < p.segment; ++j) to.shift[begin + j] += part[j];
      if (gain)
        for (int64_t j = 0; j < p.segment; ++j) part[j] *= gain[j];
      norm_gradient(p, inverse, normed, part);
    }
  }
  if (gate && p.gate_first)
    for (int64_t j = 0; j < width; ++j) {
      of_gate[j] = down[j] * s.before[j];
      down[j] *= s.factor[j];
    }
  if (to.gate) activation_gradient(p, gate, of_gate, to.gate);
  if (to.x) std::copy_n(down, width, to.x);
  if (to.skipped) {
    const real* const skip = p.of[kSkip].data();
    for (int64_t j = 0; j < width; ++j) to.skipped[j] = down[j] * skip[j];
  }
  if (to.skip) {
    const real* const skipped = p.row(kSkipped, row);
    for (int64_t j = 0; j < width; ++j) to.skip[j] += down[j] * skipped[j];
  }
}

bool is_row(const Var& numbers, int64_t width) {
  return numbers.shape().rank() == 1 && numbers.dim(0) == width;
}

void check_shapes(const Var& x, const GatedNorm& by, int64_t segment) {
  const int64_t width = x.dim(-1);
  ATTN_CHECK(segment >= 1 && width % segment == 0,
             "gated_norm: segments of {} numbers in rows of {}", segment, width);
  ATTN_CHECK(
      by.skip.defined() == by.skipped.defined() &&
          (!by.skip.defined() || (is_row(by.skip, width) && by.skipped.shape() == x.shape())),
      "gated_norm: the skip does not fit {}", x.shape().str());
  for (const Var* const numbers : {&by.gain, &by.shift})
    ATTN_CHECK(!numbers->defined() || (by.norm != GatedNorm::Norm::none &&
                                       (is_row(*numbers, width) || is_row(*numbers, segment))),
               "gated_norm: gain or shift {} for segments of {} in rows of {}",
               numbers->shape().str(), segment, width);
  ATTN_CHECK((by.activation != GatedNorm::Activation::none) == by.gate.defined() &&
                 (!by.gate.defined() || by.gate.shape() == x.shape()),
             "gated_norm: the gate does not fit {}", x.shape().str());
}

}  // namespace

Var gated_norm(const Var& x, const GatedNorm& by) {
  ATTN_CHECK(x.shape().rank() >= 1 && x.dim(-1) >= 1, "gated_norm: {}", x.shape().str());
  const int64_t width = x.dim(-1), segment = by.segment > 0 ? by.segment : width;
  check_shapes(x, by, segment);
  Pass p = {.of = {},
            .norm = by.norm,
            .activation = by.activation,
            .gate_first = by.gate_first,
            .rows = x.value().size() / width,
            .width = width,
            .segment = segment,
            .epsilon = static_cast<real>(by.epsilon)};
  const std::array<const Var*, kInputs> all = {&x,       &by.skipped, &by.skip,
                                               &by.gain, &by.shift,   &by.gate};
  std::array<Var, kInputs> given;         // those that are defined, in order,
  std::array<size_t, kInputs> slot = {};  // and where each stands among them
  size_t count = 0;
  for (size_t i = 0; i < kInputs; ++i) {
    if (!all[i]->defined()) continue;
    p.of[i] = all[i]->value();
    slot[i] = count;
    given[count++] = *all[i];
  }
  const Tensor y(x.shape());
  {
    const KernelMark mark(Part::norms);
    over_range(p.rows, 8 * width, [&](int64_t begin, int64_t end) {
      Scratch scratch(width);
      for (int64_t row = begin; row < end; ++row)
        forward_row(p, row, scratch, y.data() + row * width);
    });
  }
  return record_op(y, std::span<const Var>(given).first(count),
                   [p, slot](const Tensor& g, std::span<GradSlot> in) {
                     const KernelMark mark(Part::norms);
                     const int64_t wide = p.width, pieces = pieces_of(p.rows);
                     std::array<Tensor, kInputs> to;
                     const auto needed = [&](Input input) {
                       return p.of[input].defined() && in[slot[input]].needed();
                     };
                     for (const Input input : {kX, kSkipped, kGate})
                       if (needed(input)) to[input] = Tensor(g.shape());
                     for (const Input input : {kSkip, kGain, kShift})
                       if (needed(input)) to[input] = Tensor::zeros({pieces, wide});
                     parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
                       Scratch scratch(wide);
                       for (int64_t row = first * kPieceRows;
                            row < std::min(p.rows, last * kPieceRows); ++row) {
                         const auto at = [&](Input input, int64_t index) {
                           return to[input].defined() ? to[input].data() + index * wide : nullptr;
                         };
                         const int64_t piece = row / kPieceRows;
                         backward_row(p, row, g.data() + row * wide, scratch,
                                      {.x = at(kX, row),
                                       .skipped = at(kSkipped, row),
                                       .gate = at(kGate, row),
                                       .gain = at(kGain, piece),
                                       .shift = at(kShift, piece),
                                       .skip = at(kSkip, piece)});
                       }
                     });
                     for (const Input input : {kX, kSkipped, kGate})
                       if (to[input].defined()) in[slot[input]].give(to[input]);
                     for (const Input input : {kSkip, kGain, kShift})
                       if (to[input].defined())
                         add_pieces(to[input], 0, wide, in[slot[input]].sum());
                   });
}

}  // namespace attn
