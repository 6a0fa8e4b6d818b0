// Joins the softmax attention of one query over two lists of keys, of which each gave an output and
// a log-sum-exp, as softmax_forward.h does. A key of both lists counts twice. 3·dim FLOPs a row.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/real.h"
#include "core/tensor/tensor.h"
#include "variants/softmax/regroup.h"

namespace attn {

// Of two log-sum-exps in units of log2, +inf for nothing seen: the joint one, and the factors that
// bring the outputs together.
struct Join {
  real log_sum = kInfinity, near = 0, far = 0;

  Join(real a, real b) {
    if (a == kInfinity && b == kInfinity) return;
    const real low = -kInfinity, x = a == kInfinity ? low : a, y = b == kInfinity ? low : b;
    const real larger = y <= x ? x : y;
    const real less = std::exp2(-std::abs(x - y)), sum = 1 + less;
    log_sum = larger + std::log2(sum);
    near = (y <= x ? 1 : less) / sum;
    far = (y <= x ? less : 1) / sum;
  }
};

// Joins the outputs `more` [which.size(), 1, rows, width] and their log-sum-exps of some groups,
// `shift` added to these, to those of the rows that they come from. No two groups share a row.
inline void join_rows(const Regroup& regroup, Span which, const Tensor& more,
                      const Tensor& more_sum, real shift, const Tensor& out,
                      const Tensor& log_sum) {
  const Mark mark(Part::softmax);
  const int64_t width = more.dim(3), rows = regroup.rows;
  parallel_for(which.end - which.begin, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin * rows; row < end * rows; ++row) {
      const int64_t g = which.begin + row / rows;
      const int64_t at = regroup.from[static_cast<size_t>(g % regroup.groups * rows + row % rows)];
      if (at < 0) continue;
      const int64_t to = g / regroup.groups * regroup.len + at;
      const Join joint(log_sum[to], more_sum[row] == kInfinity ? kInfinity : more_sum[row] + shift);
      real* const into = out.data() + to * width;
      const real* const from = more.data() + row * width;
      for (int64_t c = 0; c < width; ++c) into[c] = joint.near * into[c] + joint.far * from[c];
      log_sum[to] = joint.log_sum;
    }
  });
}

}  // namespace attn
