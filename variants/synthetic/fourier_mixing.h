// The discrete Fourier transform along positions and along channels, of which the real part is
// kept. 2.5·n·d·(log2(n) + log2(d)) FLOPs, memory n·d.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

// out[b, p, r] = Σ_a,c x[b, a, c]·cos(2π(p·a/n + r·c/width)), x [batch, len, width], n = lengths[b]
// (empty: len). Rows at or beyond n are not read, and zeros in the output.
Var fourier_mixing(const Var& x, std::span<const int64_t> lengths);

Cost fourier_mixing_cost(int64_t batch, int64_t len, int64_t width);

}  // namespace attn
