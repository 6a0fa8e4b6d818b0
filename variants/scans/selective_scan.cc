// Forward and backward of the selective scan, a head at a time; see selective_scan.h.
#include "variants/scans/selective_scan.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
#include "core/simd/scan_rows.h"
#include "variants/chunked/chunked.h"
#include "variants/scans/scan_chunks.h"
#include "variants/scans/scan_decoder.h"

namespace attn {
namespace {

constexpr double kLog2e = 1.44269504088896340736;
constexpr int64_t kFlops = 6, kSelectiveBackwardFlops = 19;  // of a state and position

ScanProblem selective_problem(const SelectiveInputs& x, const std::vector<int64_t>& lengths) {
  ScanProblem p{.batch = x.x.dim(0),
                .heads = x.x.dim(1),
                .len = x.x.dim(2),
                .dim = x.x.dim(3),
                .states = x.write.dim(3),
                .lengths = lengths};
  p.state_reals = p.states * p.dim;
  const Shape gate = x.x.shape().with(3, p.states);
  ATTN_CHECK(x.delta.shape() == x.x.shape() && x.write.shape() == gate && x.read.shape() == gate &&
                 x.a_log.shape() == Shape({p.heads, p.states, p.dim}),
             "selective scan: shapes {}, {}, {}, {} beside x {}", x.delta.shape().str(),
             x.write.shape().str(), x.read.shape().str(), x.a_log.shape().str(), x.x.shape().str());
  return p;
}

struct SelectiveSaved {
  Tensor x, delta, write, read, a_log;
  Tensor states;  // before each chunk; undefined without gradients
};

// The exponents of base 2 for a step of 1.
void rates_of(const real* a_log, int64_t count, real* rates) {
  for (int64_t i = 0; i < count; ++i)
    rates[i] = static_cast<real>(-kLog2e * std::exp(static_cast<double>(a_log[i])));
}

SelectiveRows selective_rows(const ScanProblem& p, const SelectiveSaved& s, int64_t head,
                             int64_t first, int64_t count, const real* rates) {
  const int64_t at = head * p.len + first;
  return {count,
          p.dim,
          p.states,
          s.delta.data() + at * p.dim,
          s.x.data() + at * p.dim,
          s.write.data() + at * p.states,
          s.read.data() + at * p.states,
          rates};
}

int64_t forward_reals(const ScanProblem& p) { return 2 * p.state_reals; }  // rates and state

void count_selective_scan(const ScanProblem& p, int64_t head, int64_t flops) {
  count_flops(static_cast<double>(flops * p.valid(head) * p.state_reals));
}

void selective_forward_of_head(const ScanProblem& p, const SelectiveSaved& s, int64_t head,
                               real* out, real* work) {
  real *const rates = work, *const state = work + p.state_reals;
  rates_of(s.a_log.data() + head % p.heads * p.state_reals, p.state_reals, rates);
  real* const rows = out + head * p.len * p.dim;
  over_chunks(p, head, state, s.states, [&](int64_t first, int64_t count) {
    scan_selective(selective_rows(p, s, head, first, count, rates), state, rows + first * p.dim);
  });
  std::fill(rows + p.valid(head) * p.dim, rows + p.len * p.dim, real(0));
  count_selective_scan(p, head, kFlops);
}

// Of one head: gradients of everything but A_log, and of the rates.
void selective_backward_of_head(const ScanProblem& p, const SelectiveSaved& s, int64_t head,
                                const Tensor& grad_out, const SelectiveGrads& all, real* work) {
  real *const rates = work, *const grad_state = work + p.state_reals;
  rates_of(s.a_log.data() + head % p.heads * p.state_reals, p.state_reals, rates);
  std::fill_n(grad_state, p.state_reals, real(0));
  over_chunks_back(p, head, s.states, [&](int64_t first, int64_t count, const real* state) {
    const int64_t at = head * p.len + first;
    const SelectiveGrads grads{all.delta + at * p.dim, all.x + at * p.dim,
                               all.write + at * p.states, all.read + at * p.states,
                               all.rate + head * p.state_reals};
    scan_selective_backward(selective_rows(p, s, head, first, count, rates), state,
                            grad_out.data() + at * p.dim, grad_state, grads,
                            work + 2 * p.state_reals);
  });
  count_selective_scan(p, head, kSelectiveBackwardFlops);
}

void add(const Tensor& from, const Tensor& to) {
  if (!to.defined()) return;
  for (int64_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

// d/dA_log = -exp(A_log)·Δ·.. of every batch entry.
void add_rates(const ScanProblem& p, const SelectiveSaved& s, const Tensor& of_rates,
               const Tensor& to) {
  if (!to.defined()) return;
  const int64_t size = p.heads * p.state_reals;
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int64_t b = 0; b < p.batch; ++b) sum += static_cast<double>(of_rates[b * size + i]);
    to[i] -= static_cast<real>(std::exp(static_cast<double>(s.a_log[i])) * sum);
  }
}

void selective_backward(const ScanProblem& p, const SelectiveSaved& s, const Tensor& grad_out,
                        std::span<Tensor> grads) {
  const Tensor x = Tensor::zeros(s.x.shape()), delta = Tensor::zeros(s.x.shape());
  const Tensor write = Tensor::zeros(s.write.shape()), read = Tensor::zeros(s.write.shape());
  const Tensor rates = Tensor::zeros({p.total_heads(), p.state_reals});
  const SelectiveGrads all{delta.data(), x.data(), write.data(), read.data(), rates.data()};
  run_tasks(p.total_heads(),
            2 * p.state_reals + selective_backward_reals(ScanProblem::kChunk, p.states),
            [&](int64_t head, real* work) {
              selective_backward_of_head(p, s, head, grad_out, all, work);
            });
  add(x, grads[0]);
  add(delta, grads[1]);
  add(write, grads[2]);
  add(read, grads[3]);
  add_rates(p, s, rates, grads[4]);
}

}  // namespace

Var selective_scan(const SelectiveInputs& x, const std::vector<int64_t>& lengths) {
  const ScanProblem p = selective_problem(x, lengths);
  SelectiveSaved saved{x.x.value(),    x.delta.value(), x.write.value(),
                       x.read.value(), x.a_log.value(), {}};
  const bool keep = recording({x.x, x.delta, x.write, x.read, x.a_log});
  if (keep) saved.states = Tensor({p.total_heads(), p.chunks(), p.state_reals});
  const Tensor out(x.x.shape());
  run_tasks(p.total_heads(), forward_reals(p), [&](int64_t head, real* work) {
    selective_forward_of_head(p, saved, head, out.data(), work);
  });
  count_bytes(sizeof(real) * static_cast<double>(3 * out.size() + 2 * saved.write.size()));
  if (!keep) return Var(out);
  return custom_op(out, {x.x, x.delta, x.write, x.read, x.a_log},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     selective_backward(p, saved, grad_out, grads);
                   });
}

Cost selective_cost(const AttentionShape& s, int64_t states) {
  const ScanProblem p{.batch = s.batch,
                      .heads = s.heads,
                      .len = s.kv_len,
                      .dim = s.head_dim,
                      .states = states,
                      .state_reals = states * s.head_dim};
  const auto rows = static_cast<double>(p.total_heads() * p.len);
  const auto dim = static_cast<double>(p.dim), each = rows * static_cast<double>(p.state_reals);
  Cost cost;
  cost.flops = kFlops * each;
  cost.backward_flops = kSelectiveBackwardFlops * each;
  cost.bytes = sizeof(real) * rows * (3 * dim + 2 * static_cast<double>(states));
  cost.peak_bytes = sizeof(real) * rows * dim +
                    static_cast<double>(workspace_bytes(p.total_heads(), forward_reals(p)));
  cost.state_bytes = sizeof(real) * static_cast<double>(p.total_heads() * p.state_reals);
  return cost;
}

std::unique_ptr<Decoder> selective_decoder(const Shape& position, int64_t capacity,
                                           const Tensor& a_log) {
  const int64_t dim = position[3], states = a_log.dim(1), size = states * dim;
  const Tensor rates(a_log.shape());
  rates_of(a_log.data(), a_log.size(), rates.data());
  return scan_decoder(position, capacity,
                      {.state_reals = size,
                       .flops = kFlops,
                       .gate_widths = {dim, states, states},
                       .step = [=](const ScanStep& s) {
                         softplus_row(dim, s.gates[0], 1, 1, s.work);
                         scan_selective({1, dim, states, s.work, s.x, s.gates[1], s.gates[2],
                                         rates.data() + s.head * size},
                                        s.state, s.out);
                       }});
}

}  // namespace attn
