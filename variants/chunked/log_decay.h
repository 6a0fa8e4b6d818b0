// How log-decays come from gates: -exp(A_log)·softplus(dt) of Mamba-2 and its followers with a
// learned A_log [heads] (Dao and Gu 2024, arXiv:2405.21060), log σ(x)/temperature of GLA
// (arXiv:2312.06635), -exp(ω) of RWKV-6 (arXiv:2404.05892), -e^-½·σ(x) of RWKV-7 (2503.14456).
#pragma once

#include <cstdint>

#include "core/autograd/var.h"

namespace attn {

// factor·e^rate·f(sign·x) of a gate x, with the rate of the head.
struct LogDecay {
  enum class Of : uint8_t { given, softplus, exponential, sigmoid };  // given: x itself
  Of of = Of::given;
  double factor = -1;
  int sign = 1;
  Var rates = {};  // [heads]; undefined: 0

  static LogDecay of_steps(const Var& a_log) { return {.of = Of::softplus, .rates = a_log}; }
  // -softplus(-x)/temperature = log σ(x)/temperature
  static LogDecay of_sigmoid(double temperature) {
    return {.of = Of::softplus, .factor = -1 / temperature, .sign = -1};
  }
};

// What is the same for all positions of a head.
struct HeadDecay {
  LogDecay::Of of = LogDecay::Of::given;
  real sign = 1, factor = -1;

  HeadDecay() = default;
  HeadDecay(const LogDecay& rule, int64_t head);  // of one sequence

  void values(int64_t n, const real* x, real* y) const;
  void slopes(int64_t n, const real* x, real* slope) const;  // dy/dx; not of what is given
};

}  // namespace attn
