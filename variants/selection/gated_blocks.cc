// See gated_blocks.h. The forward takes tasks of some blocks; the backward a task a head of
// weights, since neighbouring blocks share positions, and makes the softmax anew.
#include "variants/selection/gated_blocks.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/base/workspace.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kBlocksOfTask = 32;
constexpr real kNormEpsilon = real(1e-6);

struct GatedLayout {
  int64_t weights, most, sums, grads, total;
  explicit GatedLayout(const BlockGates& by) {
    WorkspaceParts parts;
    const int64_t d = by.dim();
    weights = parts.take(by.slots() * d);
    most = parts.take(d);
    sums = parts.take(2 * d);
    grads = parts.take(2 * d);
    total = parts.total();
  }
};

// Calls visit(slot, k, v, logits) for each slot that is there: of the own block, then of the one
// before.
template <class Visit>
void visit_slots(const BlockGates& by, const BlockSlots& of, Visit&& visit) {
  const int64_t d = by.dim(), width = by.width();
  for (int64_t t = 0; t < by.stride; ++t)
    visit(t, of.k + t * d, of.v + t * d, of.logits + t * width);
  if (!of.earlier_k) return;
  for (int64_t t = 0; t < by.stride; ++t)
    visit(by.stride + t, of.earlier_k + t * d, of.earlier_v + t * d,
          of.earlier_logits + t * width + d);
}

// Softmax weights of the slots in each channel, [slots, d].
void weigh(const BlockGates& by, int64_t head, const BlockSlots& of, real* most, real* weights) {
  const int64_t d = by.dim(), count = of.earlier_k ? by.slots() : by.stride;
  const real* const position = by.position.value().data() + head * by.slots() * d;
  std::fill_n(most, d, -kInfinity);
  visit_slots(by, of, [&](int64_t s, const real*, const real*, const real* logits) {
    real* const to = weights + s * d;
    for (int64_t c = 0; c < d; ++c) {
      to[c] = logits[c] + position[s * d + c];
      most[c] = to[c] > most[c] ? to[c] : most[c];
    }
  });
  for (int64_t s = 0; s < count; ++s)
    for (int64_t c = 0; c < d; ++c) weights[s * d + c] -= most[c];
  exp_row(count * d, weights, 1, 0, weights);
  real* const sum = most;
  std::fill_n(sum, d, real(0));
  for (int64_t s = 0; s < count; ++s)
    for (int64_t c = 0; c < d; ++c) sum[c] += weights[s * d + c];
  for (int64_t c = 0; c < d; ++c) sum[c] = 1 / sum[c];
  for (int64_t s = 0; s < count; ++s)
    for (int64_t c = 0; c < d; ++c) weights[s * d + c] *= sum[c];
}

// The weighted sums of keys and of values, [2·d]. Keys are summed as distances from the block's
// first: rows of equal keys are equal to the last bit, and no rounding chooses among them.
void sum_slots(const BlockGates& by, const BlockSlots& of, const real* weights, real* sums) {
  const int64_t d = by.dim();
  std::fill_n(sums, 2 * d, real(0));
  visit_slots(by, of, [&](int64_t s, const real* k, const real* v, const real*) {
    const real* const w = weights + s * d;
    for (int64_t c = 0; c < d; ++c) {
      sums[c] += w[c] * (k[c] - of.k[c]);
      sums[d + c] += w[c] * v[c];
    }
  });
  for (int64_t c = 0; c < d; ++c) sums[c] += of.k[c];
}

real over_rms(const real* x, int64_t d) {
  return 1 / std::sqrt(row_dot(x, x, d) / static_cast<real>(d) + kNormEpsilon);
}

const real* gain_of(const Var& gain, int64_t head) {
  return gain.value().data() + head * gain.dim(1);
}

// x·gain/rms(x) of sums x. Given the gradient g of that, sets g to the gradient of x, and adds that
// of the gain.
void norm_backward(const real* x, int64_t d, const real* gain, real* g, real* of_gain) {
  const real factor = over_rms(x, d);
  real mean = 0;
  for (int64_t c = 0; c < d; ++c) {
    const real unit = factor * x[c];
    if (of_gain) of_gain[c] += g[c] * unit;
    g[c] *= gain[c];
    mean += g[c] * unit;
  }
  mean /= static_cast<real>(d);
  for (int64_t c = 0; c < d; ++c) g[c] = factor * (g[c] - mean * factor * x[c]);
}

struct GatedProblem {
  BlockGates by;
  Tensor k, v, logits;
  std::vector<int64_t> lengths;

  int64_t len() const { return k.dim(2); }
  int64_t heads() const { return k.dim(0) * k.dim(1); }
  int64_t rows() const { return std::max<int64_t>(1, len() / by.stride); }
  int64_t blocks(int64_t head) const {  // that lie within the sequence
    const int64_t b = head / k.dim(1);
    return (lengths.empty() ? len() : lengths[static_cast<size_t>(b)]) / by.stride;
  }
  int64_t first(int64_t head, int64_t block) const { return head * len() + block * by.stride; }
  BlockSlots slots(int64_t head, int64_t block) const {
    const int64_t d = by.dim(), at = first(head, block), before = at - by.stride;
    BlockSlots of{k.data() + at * d, v.data() + at * d, logits.data() + at * by.width()};
    if (by.overlap && block > 0) {
      of.earlier_k = k.data() + before * d;
      of.earlier_v = v.data() + before * d;
      of.earlier_logits = logits.data() + before * by.width();
    }
    return of;
  }
};

// One block's share of all gradients: of k, v, logits, position and gains.
void row_backward(const GatedProblem& p, int64_t head, int64_t block, const Tensor& grad,
                  real* work, std::span<Tensor> grads) {
  const BlockGates& by = p.by;
  const GatedLayout layout(by);
  const int64_t d = by.dim(), own = head % by.heads();
  const BlockSlots slots = p.slots(head, block);
  real *const weights = work + layout.weights, *const sums = work + layout.sums,
              *const g = work + layout.grads;
  weigh(by, own, slots, work + layout.most, weights);
  sum_slots(by, slots, weights, sums);
  std::copy_n(grad.data() + (head * p.rows() + block) * 2 * d, 2 * d, g);
  const auto of_head = [&](const Tensor& t, int64_t each) {
    return t.defined() ? t.data() + own * each : nullptr;
  };
  norm_backward(sums, d, gain_of(by.key_gain, own), g, of_head(grads[4], d));
  norm_backward(sums + d, d, gain_of(by.value_gain, own), g + d, of_head(grads[5], d));
  real* const of_position = of_head(grads[3], by.slots() * d);
  visit_slots(by, slots, [&](int64_t s, const real* k, const real* v, const real*) {
    const bool is_own = s < by.stride;
    const int64_t at = p.first(head, is_own ? block : block - 1) + s % by.stride;
    const real* const w = weights + s * d;
    if (grads[0].defined())
      for (int64_t c = 0; c < d; ++c) grads[0][at * d + c] += w[c] * g[c];
    if (grads[1].defined())
      for (int64_t c = 0; c < d; ++c) grads[1][at * d + c] += w[c] * g[d + c];
    const auto of_logit = [&](int64_t c) {
      return w[c] * (g[c] * (k[c] - sums[c]) + g[d + c] * (v[c] - sums[d + c]));
    };
    real* const to =
        grads[2].defined() ? grads[2].data() + at * by.width() + (is_own ? 0 : d) : nullptr;
    for (int64_t c = 0; to && c < d; ++c) to[c] += of_logit(c);
    for (int64_t c = 0; of_position && c < d; ++c) of_position[s * d + c] += of_logit(c);
  });
}

}  // namespace

int64_t gated_row_reals(const BlockGates& by) { return GatedLayout(by).total; }

void gated_row(const BlockGates& by, int64_t head, const BlockSlots& slots, real* work, real* to) {
  const GatedLayout layout(by);
  const int64_t d = by.dim();
  real *const weights = work + layout.weights, *const sums = work + layout.sums;
  weigh(by, head, slots, work + layout.most, weights);
  sum_slots(by, slots, weights, sums);
  const real *const key_gain = gain_of(by.key_gain, head), *const value_gain =
                                                               gain_of(by.value_gain, head);
  const real of_key = over_rms(sums, d), of_value = over_rms(sums + d, d);
  for (int64_t c = 0; c < d; ++c) {
    to[c] = of_key * key_gain[c] * sums[c];
    to[d + c] = of_value * value_gain[c] * sums[d + c];
  }
  count_flops(5 * static_cast<double>((slots.earlier_k ? by.slots() : by.stride) * d));
}

Var gated_blocks(const BlockGates& by, const Var& k, const Var& v, const Var& logits,
                 std::span<const int64_t> lengths) {
  const GatedProblem p{by, k.value(), v.value(), logits.value(), {lengths.begin(), lengths.end()}};
  const int64_t rows = p.rows(), d = by.dim(), tasks = (rows + kBlocksOfTask - 1) / kBlocksOfTask;
  const Tensor out(k.shape().with(2, rows).with(3, 2 * d));
  const Mark mark(Part::softmax);
  run_tasks(p.heads() * tasks, GatedLayout(by).total, [&](int64_t task, real* work) {
    const int64_t head = task / tasks, begin = task % tasks * kBlocksOfTask;
    for (int64_t block = begin; block < std::min(begin + kBlocksOfTask, rows); ++block) {
      real* const to = out.data() + (head * rows + block) * 2 * d;
      if (block < p.blocks(head))
        gated_row(by, head % by.heads(), p.slots(head, block), work, to);
      else
        std::fill_n(to, 2 * d, real(0));
    }
  });
  return custom_op(out, {k, v, logits, by.position, by.key_gain, by.value_gain},
                   [p](const Tensor& grad, std::span<Tensor> grads) {
                     const Mark backward(Part::softmax);
                     run_tasks(p.by.heads(), GatedLayout(p.by).total, [&](int64_t own, real* work) {
                       int64_t slots = 0;
                       for (int64_t head = own; head < p.heads(); head += p.by.heads()) {
                         for (int64_t block = 0; block < p.blocks(head); ++block) {
                           row_backward(p, head, block, grad, work, grads);
                           slots += block > 0 ? p.by.slots() : p.by.stride;
                         }
                       }
                       count_flops(8 * static_cast<double>(slots * p.by.dim()));
                     });
                   });
}

double gated_block_flops(const BlockGates& by, int64_t heads, int64_t len) {
  const int64_t blocks = len / by.stride;
  if (blocks == 0) return 0;
  const int64_t slots = blocks * by.slots() - (by.overlap ? by.stride : 0);
  return 5 * static_cast<double>(heads * slots * by.dim());
}

}  // namespace attn
