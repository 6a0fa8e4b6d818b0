// Forward and backward, a head at a time; see constant_scan.h.
#include "variants/scans/constant_scan.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/scan_rows.h"
#include "variants/scans/scan_chunks.h"
#include "variants/scans/scan_decoder.h"

namespace attn {
namespace {

constexpr int64_t kConstantBackwardFlops = 8 + 4 + 4 + 8 + 1 + 8;  // of a state and position

ScanProblem constant_problem(int64_t batch, int64_t heads, int64_t len, int64_t dim,
                             int64_t states) {
  return {.batch = batch,
          .heads = heads,
          .len = len,
          .dim = dim,
          .states = states,
          .state_reals = 2 * states * dim};
}

ConstantRows constant_rows(const ScanProblem& p, const Tensor& taps, int64_t head, int64_t steps,
                           const real* x) {
  const int64_t size = p.states * p.dim;
  const auto part = [&](int64_t i) { return taps.data() + (i * p.heads + head % p.heads) * size; };
  return {steps, p.dim, p.states, x, part(0), part(1), part(2), part(3)};
}

void count_scan(const ScanProblem& p, int64_t head, int64_t flops) {
  count_flops(static_cast<double>(flops * p.valid(head) * p.states * p.dim));
}

void constant_forward_of_head(const ScanProblem& p, const Tensor& x, const Tensor& taps,
                              const Tensor& kept, int64_t head, real* out, real* state) {
  const int64_t at = head * p.len * p.dim;
  over_chunks(p, head, state, kept, [&](int64_t first, int64_t count) {
    const int64_t row = at + first * p.dim;
    scan_constant(constant_rows(p, taps, head, count, x.data() + row), state, out + row);
  });
  std::fill(out + at + p.valid(head) * p.dim, out + at + p.len * p.dim, real(0));
  count_scan(p, head, kConstantFlops);
}

struct ConstantSaved {
  Tensor x, taps, states;
};

// Of one head: the gradient of x, and of its taps [4, states, dim].
void constant_backward_of_head(const ScanProblem& p, const ConstantSaved& s, int64_t head,
                               const Tensor& grad_out, real* grad_x, real* grad_taps, real* work) {
  const int64_t size = p.states * p.dim;
  std::fill_n(work, p.state_reals, real(0));  // the gradient of the last state
  over_chunks_back(p, head, s.states, [&](int64_t first, int64_t count, const real* state) {
    const int64_t row = (head * p.len + first) * p.dim;
    scan_constant_backward(
        constant_rows(p, s.taps, head, count, s.x.data() + row), state, grad_out.data() + row, work,
        {grad_x + row, grad_taps, grad_taps + size, grad_taps + 2 * size, grad_taps + 3 * size},
        work + p.state_reals);
  });
  count_scan(p, head, kConstantBackwardFlops);
}

void constant_backward(const ScanProblem& p, const ConstantSaved& s, const Tensor& grad_out,
                       std::span<Tensor> grads) {
  const int64_t size = p.states * p.dim;
  const Tensor x = Tensor::zeros(s.x.shape()), taps = Tensor::zeros({p.total_heads(), 4 * size});
  run_tasks(p.total_heads(), p.state_reals + constant_backward_reals(ScanProblem::kChunk),
            [&](int64_t head, real* work) {
              constant_backward_of_head(p, s, head, grad_out, x.data(),
                                        taps.data() + head * 4 * size, work);
            });
  if (grads[0].defined())
    for (int64_t i = 0; i < x.size(); ++i) grads[0][i] += x[i];
  if (!grads[1].defined()) return;
  for (int64_t head = 0; head < p.total_heads(); ++head)
    for (int64_t part = 0; part < 4; ++part)
      for (int64_t i = 0; i < size; ++i)
        grads[1][(part * p.heads + head % p.heads) * size + i] +=
            taps[(head * 4 + part) * size + i];
}

}  // namespace

Var constant_scan(const Var& x, const Var& taps, const std::vector<int64_t>& lengths) {
  ATTN_CHECK(taps.shape().rank() == 4 && taps.dim(0) == 4 && taps.dim(1) == x.dim(1) &&
                 taps.dim(3) == x.dim(3),
             "constant scan: taps {} beside x {}", taps.shape().str(), x.shape().str());
  ScanProblem p = constant_problem(x.dim(0), x.dim(1), x.dim(2), x.dim(3), taps.dim(2));
  p.lengths = lengths;
  ConstantSaved saved{x.value(), taps.value(), {}};
  const bool keep = recording({x, taps});
  if (keep) saved.states = Tensor({p.total_heads(), p.chunks(), p.state_reals});
  const Tensor out(x.shape());
  run_tasks(p.total_heads(), p.state_reals, [&](int64_t head, real* state) {
    constant_forward_of_head(p, saved.x, saved.taps, saved.states, head, out.data(), state);
  });
  count_bytes(sizeof(real) * static_cast<double>(2 * out.size() + taps.value().size()));
  if (!keep) return Var(out);
  return custom_op(out, {x, taps},
                   [p = std::move(p), saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     constant_backward(p, saved, grad_out, grads);
                   });
}

Cost constant_cost(const AttentionShape& s, int64_t states) {
  const ScanProblem p = constant_problem(s.batch, s.heads, s.kv_len, s.head_dim, states);
  const auto rows = static_cast<double>(p.total_heads() * p.len * p.dim);
  const auto taps = static_cast<double>(4 * p.heads * p.states * p.dim);
  Cost cost;
  cost.flops = kConstantFlops * rows * static_cast<double>(p.states);
  cost.backward_flops = kConstantBackwardFlops * rows * static_cast<double>(p.states);
  cost.bytes = sizeof(real) * (2 * rows + taps);
  cost.peak_bytes = sizeof(real) * (rows + taps) +
                    static_cast<double>(workspace_bytes(p.total_heads(), p.state_reals));
  cost.state_bytes = sizeof(real) * static_cast<double>(p.total_heads() * p.state_reals);
  return cost;
}

std::unique_ptr<Decoder> constant_decoder(const Shape& position, int64_t capacity,
                                          const Tensor& taps) {
  const ScanProblem p = constant_problem(1, taps.dim(1), 1, taps.dim(3), taps.dim(2));
  return scan_decoder(position, capacity,
                      {.state_reals = p.state_reals,
                       .flops = kConstantFlops / 2,  // of a complex number
                       .gate_widths = {},
                       .step = [p, taps](const ScanStep& s) {
                         scan_constant(constant_rows(p, taps, s.head, 1, s.x), s.state, s.out);
                       }});
}

}  // namespace attn
