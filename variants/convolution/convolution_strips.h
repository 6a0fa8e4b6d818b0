// What the two forms of a long convolution share: its sizes, and its division into tasks. A task is
// a strip of channels of one head, for all batch entries, so that each gradient has one writer. See
// long_convolution.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/real.h"
#include "core/base/recycled.h"

namespace attn::long_convolutions {

constexpr int64_t kLanes = 16;           // channels of a task: a cache line of floats
constexpr int64_t kLongestDirect = 256;  // where both forms take about as long

struct Problem {
  int64_t batch, heads, len, dim, taps;
  bool causal;
  std::vector<int64_t, Recycled<int64_t>> lengths;

  int64_t width() const { return heads * dim; }
  int64_t origin() const { return causal ? 0 : (taps - 1) / 2; }  // the filter's row of distance 0
  int64_t valid(int64_t entry) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(entry)];
  }
  int64_t strips() const { return (dim + kLanes - 1) / kLanes; }
  int64_t tasks() const { return heads * strips(); }
};

// Channels [first, first + lanes) of one head, of all batch entries.
struct Strip {
  const Problem& p;
  int64_t head, first, lanes;

  Strip(const Problem& problem, int64_t task)
      : p(problem),
        head(task / problem.strips()),
        first(task % problem.strips() * kLanes),
        lanes(std::min(kLanes, problem.dim - first)) {}
  int64_t at(int64_t entry) const { return (entry * p.heads + head) * p.len * p.dim + first; }
  int64_t column() const { return head * p.dim + first; }  // of filter and skip
};

struct Arrays {
  const real *x, *filter, *skip;  // skip may be null
};
struct Gradients {
  const real* of_out;
  real *x, *filter, *skip;  // null: not asked for
};

// Each adds to the arrays; `out` is zeros before.
void direct_forward(const Problem& p, const Arrays& a, real* out);
void direct_backward(const Problem& p, const Arrays& a, const Gradients& g);
void fft_forward(const Problem& p, const Arrays& a, real* out);
void fft_backward(const Problem& p, const Arrays& a, const Gradients& g);
int64_t fft_workspace_reals(int64_t len);  // of a worker of fft_forward

}  // namespace attn::long_convolutions
