// Joins the softmax attention of one query over two lists of keys, of which each gave an output and
// a log-sum-exp. A key of both lists counts twice. 3·dim FLOPs a row; the kernels of a list are
// those of variants/softmax.
#pragma once

#include <cmath>

#include "core/base/real.h"

namespace attn {

// Of two log-sum-exps in units of log2, +inf for nothing seen: the joint one, and the factors that
// bring the outputs together.
struct Join {
  real log_sum = kInfinity, near = 0, far = 0;

  Join(real a, real b) {
    if (a == kInfinity && b == kInfinity) return;
    const real low = -kInfinity, x = a == kInfinity ? low : a, y = b == kInfinity ? low : b;
    const real larger = y <= x ? x : y;
    const real u = std::exp2(x - larger), w = std::exp2(y - larger);
    log_sum = larger + std::log2(u + w);
    near = u / (u + w);
    far = w / (u + w);
  }
};

}  // namespace attn
