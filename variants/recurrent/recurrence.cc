// Recurrence over a sequence; see recurrence.h. Threads share the batch entries; the entries of a
// thread advance together. The forward saves one row for each position; the backward replaces the
// row by the gradient of the pre-activations.
#include "variants/recurrent/recurrence.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/packed_weight.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

struct Sequences {
  RecurrentCell cell;
  bool reverse;
  std::vector<int64_t, Recycled<int64_t>> lengths;
  Tensor sums, state, candidate_bias;  // as in recurrence.h
  Tensor out;                          // [batch, len, dim]
  Tensor saved;  // [batch, len, saved·dim], undefined where no backward follows

  int64_t batch() const { return sums.dim(0); }
  int64_t len() const { return sums.dim(1); }
  int64_t dim() const { return state.dim(0); }
  int64_t gates() const { return state.dim(1); }
  int64_t saved_reals() const { return saved_of(cell) * dim(); }
  int64_t length(int64_t b) const {
    return lengths.empty() ? len() : lengths[static_cast<size_t>(b)];
  }
  int64_t at(int64_t step) const { return reverse ? len() - 1 - step : step; }
  int64_t before(int64_t t) const { return reverse ? t + 1 : t - 1; }
  bool starts(int64_t b, int64_t t) const {
    return before(t) < 0 || before(t) >= (reverse ? length(b) : len());
  }
  real* out_row(int64_t b, int64_t t) const { return out.data() + (b * len() + t) * dim(); }
  real* saved_row(int64_t b, int64_t t) const {
    return saved.data() + (b * len() + t) * saved_reals();
  }
  double product_flops() const {
    return 2 * static_cast<double>(batch() * len()) * static_cast<double>(dim() * gates());
  }
};

int64_t groups_of(int64_t batch) { return std::min<int64_t>(batch, threads()); }

int64_t group_reals(RecurrentCell cell, int64_t rows, int64_t dim) {
  return (saved_of(cell) + gates_of(cell) + 2) * padded_reals(rows * dim);
}

// Entries [first, first + rows) of the batch, in a workspace.
struct Group {
  Group(const Sequences& sequences, int64_t groups, int64_t index, real* workspace)
      : s(sequences),
        first(s.batch() * index / groups),
        rows(s.batch() * (index + 1) / groups - first),
        zeros(workspace),
        carried(zeros + padded_reals(rows * s.dim())),
        parts(carried + padded_reals(rows * s.dim())),
        scratch(parts + gates_of(s.cell) * padded_reals(rows * s.dim())) {}

  // Where entry b's gates of position t are made.
  real* gates(int64_t b, int64_t t) const {
    return s.saved.defined() ? s.saved_row(b, t) : scratch + (b - first) * s.saved_reals();
  }
  const real* state_before(int64_t b, int64_t t) const {
    return s.starts(b, t) ? zeros : s.out_row(b, s.before(t));
  }
  const real* cell_before(int64_t b, int64_t t) const {
    if (!s.saved.defined()) return scratch + (b - first) * s.saved_reals() + 4 * s.dim();
    return s.starts(b, t) ? zeros : s.saved_row(b, s.before(t)) + 4 * s.dim();
  }

  const Sequences& s;
  int64_t first, rows;
  real *zeros, *carried, *parts,
      *scratch;  // [rows, dim] twice, [rows, gates·dim], [rows, saved·dim]
};

// parts = x·W. The panels of W from the last to the first if `backwards`: every other step, so that
// the first-level cache still holds the panels that the step before read last.
void multiply_by_state(const Group& g, const PackedWeight& state, Left x, bool backwards) {
  const int64_t gates = g.s.gates(), panels = (gates + kPanel - 1) / kPanel;
  for (int64_t i = 0; i < panels; ++i) {
    const int64_t begin = (backwards ? panels - 1 - i : i) * kPanel;
    state.multiply(g.rows, x, {0, state.depth()}, {begin, std::min(begin + kPanel, gates)},
                   g.parts + begin, gates, false);
  }
}

void advance(const Group& g, const PackedWeight& state, int64_t step) {
  const Sequences& s = g.s;
  const int64_t t = s.at(step), dim = s.dim(), gates = s.gates();
  if (step == 0)
    std::fill_n(g.parts, g.rows * gates, real(0));
  else
    multiply_by_state(g, state, {s.out_row(g.first, s.before(t)), s.len() * dim, 1}, step % 2 == 1);
  const Mark mark(Part::recurrence);
  for (int64_t b = g.first; b < g.first + g.rows; ++b) {
    const real* const parts = g.parts + (b - g.first) * gates;
    const real* const sums = s.sums.data() + (b * s.len() + t) * gates;
    real *const a = g.gates(b, t), *const h = s.out_row(b, t);
    if (t >= s.length(b)) {
      std::copy_n(step == 0 ? g.zeros : s.out_row(b, s.before(t)), dim, h);
      if (s.saved.defined()) std::fill_n(a, s.saved_reals(), real(0));
    } else if (s.cell == RecurrentCell::lstm) {
      for (int64_t j = 0; j < gates; ++j) a[j] = sums[j] + parts[j];
      lstm_row(dim, a, g.cell_before(b, t), h);
    } else {
      std::copy_n(sums, gates, a);
      gru_row(dim, a, parts, s.candidate_bias.data(), g.state_before(b, t), h);
    }
  }
}

void forward(const Sequences& s) {
  const PackedWeight state(s.state, false);
  const int64_t groups = groups_of(s.batch()), most = (s.batch() + groups - 1) / groups;
  run_tasks(groups, group_reals(s.cell, most, s.dim()), [&](int64_t index, real* work) {
    const Group g(s, groups, index, work);
    std::fill_n(g.zeros, g.rows * s.dim(), real(0));
    std::fill_n(g.scratch, g.rows * s.saved_reals(), real(0));
    for (int64_t step = 0; step < s.len(); ++step) advance(g, state, step);
  });
  count_flops(s.product_flops());
}

// Gates and states of position t, backwards: leaves the gradients of its sums in its saved row.
void retreat_cells(const Group& g, const real* grad, int64_t t) {
  const Mark mark(Part::recurrence);
  const Sequences& s = g.s;
  const int64_t dim = s.dim();
  for (int64_t b = g.first; b < g.first + g.rows; ++b) {
    real *const dh = g.carried + (b - g.first) * dim, *const dc = g.parts + (b - g.first) * dim;
    const real* const grad_h = grad + (b * s.len() + t) * dim;
    for (int64_t j = 0; j < dim; ++j) dh[j] += grad_h[j];
    if (t >= s.length(b)) continue;  // the state went through; its saved row is zero
    if (s.cell == RecurrentCell::lstm) {
      lstm_row_backward(dim, s.saved_row(b, t), g.cell_before(b, t), dh, dc);
      std::fill_n(dh, dim, real(0));
    } else {
      gru_row_backward(dim, s.saved_row(b, t), g.state_before(b, t), dh);
    }
  }
}

// The gradient of position t's sums from g.carried, that of its state, which becomes that of the
// state before it; g.parts: of the cell.
void retreat(const Group& g, const PackedWeight& transposed, const real* grad, int64_t t) {
  const Sequences& s = g.s;
  retreat_cells(g, grad, t);
  transposed.multiply(g.rows, {s.saved_row(g.first, t), s.len() * s.saved_reals(), 1}, g.carried,
                      s.dim(), true);
}

// Σ over positions of (state before)ᵀ · gradients, a strip of columns a task.
void add_state_gradient(const Sequences& s, real* weight) {
  constexpr int64_t kDepth = 128;  // positions multiplied at once: the strip's part stays in L1
  const int64_t dim = s.dim(), gates = s.gates(), row = s.saved_reals();
  const int64_t from = s.reverse ? 1 : 0, to = s.reverse ? 0 : 1;  // first position of each
  run_tasks((gates + kPanel - 1) / kPanel, 0, [&](int64_t strip, real*) {
    const int64_t j = strip * kPanel, cols = std::min(kPanel, gates - j);
    for (int64_t b = 0; b < s.batch(); ++b)
      for (int64_t i = 0; i + 1 < s.len(); i += kDepth)
        add_product(dim, cols, std::min(kDepth, s.len() - 1 - i), {s.out_row(b, from + i), 1, dim},
                    {s.saved_row(b, to + i) + j, row}, weight + j, gates);
  });
  count_flops(s.product_flops());
}

// grads: of the sums, the state's weight and the candidate's bias, undefined where not wanted.
void backward(const Sequences& s, const Tensor& grad, std::span<Tensor> grads) {
  const PackedWeight transposed(s.state, true);
  const int64_t groups = groups_of(s.batch()), most = (s.batch() + groups - 1) / groups;
  const int64_t dim = s.dim(), gates = s.gates(), row = s.saved_reals(), all = s.batch() * s.len();
  run_tasks(groups, group_reals(s.cell, most, dim), [&](int64_t index, real* work) {
    const Group g(s, groups, index, work);
    for (real* buffer : {g.zeros, g.carried, g.parts}) std::fill_n(buffer, g.rows * dim, real(0));
    for (int64_t step = s.len(); step-- > 0;) retreat(g, transposed, grad.data(), s.at(step));
  });
  count_flops(s.product_flops());
  if (grads[1].defined()) add_state_gradient(s, grads[1].data());
  if (s.cell == RecurrentCell::gru && grads[2].defined())
    add_column_sums(grads[2].data(), s.saved.data() + 2 * dim, all, dim, row);
  if (!grads[0].defined()) return;
  over_range(all, gates, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const real* const a = s.saved.data() + i * row;
      real* const to = grads[0].data() + i * gates;
      const int64_t shared = s.cell == RecurrentCell::lstm ? gates : 2 * dim, skip = dim;
      for (int64_t j = 0; j < shared; ++j) to[j] += a[j];
      for (int64_t j = shared; j < gates; ++j) to[j] += a[skip + j];
    }
  });
}

}  // namespace

Var recurrence(const Var& sums, const RecurrentWeights& weights, const Recurrence& r) {
  const Var& bias = weights.candidate_bias;
  const int64_t dim = weights.state.dim(0), gates = gates_of(r.cell) * dim;
  const bool fits = sums.shape().rank() == 3 && sums.dim(2) == gates &&
                    weights.state.dim(1) == gates &&
                    bias.defined() == (r.cell == RecurrentCell::gru);
  ATTN_CHECK(fits, "a recurrence of {} with a state's weight of {}", sums.shape().str(),
             weights.state.shape().str());
  Sequences s{r.cell,
              r.reverse,
              {r.lengths.begin(), r.lengths.end()},
              sums.value(),
              weights.state.value(),
              bias.defined() ? bias.value() : Tensor(),
              Tensor(sums.shape().with(2, dim)),
              {}};
  const bool gru = r.cell == RecurrentCell::gru;
  if (gru ? recording({sums, weights.state, bias}) : recording({sums, weights.state}))
    s.saved = Tensor(sums.shape().with(2, s.saved_reals()));
  forward(s);
  const Tensor out = s.out;
  const auto back = [s](const Tensor& grad, std::span<Tensor> grads) { backward(s, grad, grads); };
  return gru ? custom_op(out, {sums, weights.state, bias}, back)
             : custom_op(out, {sums, weights.state}, back);
}

Cost recurrence_cost(RecurrentCell cell, int64_t batch, int64_t len, int64_t in, int64_t dim) {
  const int64_t groups = groups_of(batch), most = (batch + groups - 1) / groups,
                gates = gates_of(cell) * dim;
  const auto rows = static_cast<double>(batch * len), sums = rows * static_cast<double>(gates),
             x = rows * static_cast<double>(in), states = rows * static_cast<double>(dim);
  const auto work = static_cast<double>(workspace_bytes(groups, group_reals(cell, most, dim)));
  const double weights = static_cast<double>(gates * (in + dim));
  return {.flops = 2 * rows * weights,
          .bytes = sizeof(real) * (x + 2 * sums + states + weights),
          .peak_bytes =
              work + sizeof(real) * (sums + states + static_cast<double>(packed_reals(gates, dim))),
          .state_bytes = sizeof(real) * static_cast<double>(batch * dim) *
                         (cell == RecurrentCell::lstm ? 2 : 1)};
}

}  // namespace attn
