// The solver of the mesa layer: x_t = (H_t + diag(λ))⁻¹·q_t with H_t = a_t·H_{t-1} + k_tᵀ·w_t for
// written rows w_t = β_t·k_t, by conjugate gradients from 0, whose products H_t·p are those of
// chunked_attention.h. von Oswald et al. 2025, arXiv:2506.05233, section 3. The gradient is that of
// the linear system, not of the iterations: with y = (H + diag(λ))⁻¹·dx, dq = y and the gradients
// of H are those of -y·(H·x). About iterations·n·(2·d² + 100·d) FLOPs each way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/autograd/var.h"
#include "core/base/function.h"
#include "variants/api/cost.h"
#include "variants/chunked/log_decay.h"

namespace attn {

inline constexpr int64_t kMesaChunk = 32;  // positions between states that are kept

struct MesaInputs {
  Var q, k, written;  // [batch, heads, len, dim]
  Var decay;          // [batch, heads, len, 1]: log-decays are by `rule`
  LogDecay rule = {};
  Var lambda;  // [heads, dim], above 0
};

// x [batch, heads, len, dim], differentiable by q, k, written, decay and lambda; the gradients of k
// and written hold where written = β·k, which makes H symmetric. Of padding only q is read; its
// rows meet the last state.
Var mesa_solve(const MesaInputs& inputs, int64_t iterations, const std::vector<int64_t>& lengths,
               int64_t chunk = kMesaChunk);
// Without q, k, written and λ; peak_bytes is the workspace alone.
Cost mesa_solve_cost(const AttentionShape& shape, int64_t iterations);

// The conjugate gradients of `rows` systems at once, each by itself: apply(p, to) sets to = A·p of
// all rows [rows, dim]. A system whose residual is as small as rounding makes it stays as it is. x
// is the result, work has cg_reals() numbers. The trap of popular code is a small number added to
// both divisors, which stops convergence at 1e-3.
inline int64_t cg_reals(int64_t rows, int64_t dim) { return 3 * rows * dim + 3 * rows; }
using ApplyRows = FunctionRef<void(const real* p, real* to)>;
void conjugate_gradients(int64_t rows, int64_t dim, int64_t iterations, const real* q,
                         ApplyRows apply, real* x, real* work);

}  // namespace attn
