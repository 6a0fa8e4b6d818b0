// Forward and backward of the projection along the sequence; n: length, r: rank. Tasks own rows of
// ranks, or of positions.
#include "variants/kernels/sequence_projection.h"

#include <algorithm>
#include <vector>

#include "core/check.h"
#include "core/counters.h"
#include "core/eigen.h"
#include "core/parallel.h"

namespace attn {
namespace {

struct Projection {
  Tensor weight;  // [heads or 1, rank, max_len]
  Tensor x;       // [batch, heads, len, dim]
  std::vector<int64_t> lengths;

  int64_t rank() const { return weight.dim(1); }
  int64_t length(int64_t head) const {
    return lengths.empty() ? x.dim(2) : lengths[static_cast<size_t>(head / x.dim(1))];
  }
  int64_t weight_of(int64_t head) const { return weight.dim(0) == 1 ? 0 : head % x.dim(1); }
  void count(int64_t rows, int64_t cols) const {
    count_flops(2 * static_cast<double>(rows * cols * x.dim(3)));
  }
};

constexpr int64_t kRanks = 32, kPositions = 256;  // of a task

void project(const Projection& p, const Tensor& out) {
  const int64_t blocks = (p.rank() + kRanks - 1) / kRanks;
  parallel_for(p.x.dim(0) * p.x.dim(1) * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / blocks, first = task % blocks * kRanks, n = p.length(head);
      const int64_t rows = std::min(kRanks, p.rank() - first);
      matrix(out, head).middleRows(first, rows).noalias() =
          matrix(p.weight, p.weight_of(head)).block(first, 0, rows, n) *
          matrix(p.x, head).topRows(n);
      p.count(rows, n);
    }
  });
}

void add_input_gradient(const Projection& p, const Tensor& grad, const Tensor& grad_x) {
  const int64_t blocks = (p.x.dim(2) + kPositions - 1) / kPositions;
  parallel_for(p.x.dim(0) * p.x.dim(1) * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / blocks, first = task % blocks * kPositions;
      const int64_t rows = std::min(kPositions, p.length(head) - first);
      if (rows <= 0) continue;
      matrix(grad_x, head).middleRows(first, rows).noalias() +=
          matrix(p.weight, p.weight_of(head)).middleCols(first, rows).transpose() *
          matrix(grad, head);
      p.count(rows, p.rank());
    }
  });
}

// A task owns some positions of one projection matrix and sums over the heads that share it.
void add_weight_gradient(const Projection& p, const Tensor& grad, const Tensor& grad_weight) {
  const int64_t blocks = (p.x.dim(2) + kPositions - 1) / kPositions;
  parallel_for(p.weight.dim(0) * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      for (int64_t head = 0; head < p.x.dim(0) * p.x.dim(1); ++head) {
        const int64_t first = task % blocks * kPositions,
                      cols = std::min(kPositions, p.length(head) - first);
        if (p.weight_of(head) != task / blocks || cols <= 0) continue;
        matrix(grad_weight, task / blocks).middleCols(first, cols).noalias() +=
            matrix(grad, head) * matrix(p.x, head).middleRows(first, cols).transpose();
        p.count(cols, p.rank());
      }
  });
}

}  // namespace

Var project_sequence(const Var& projection, const Var& x, std::span<const int64_t> lengths) {
  const Projection p{projection.value(), x.value(), {lengths.begin(), lengths.end()}};
  ATTN_CHECK(p.weight.dim(2) >= x.dim(2), "{} positions do not fit a projection of {}, {} at most",
             x.dim(2), p.weight.shape().str(), p.weight.dim(2));
  ATTN_CHECK(p.weight.dim(0) == 1 || p.weight.dim(0) == x.dim(1),
             "a projection of {} does not fit {}", p.weight.shape().str(), x.shape().str());
  const Tensor out(x.shape().with(2, p.rank()));
  project(p, out);
  return custom_op(out, {projection, x}, [p](const Tensor& grad, std::span<Tensor> grads) {
    if (grads[0].defined()) add_weight_gradient(p, grad, grads[0]);
    if (grads[1].defined()) add_input_gradient(p, grad, grads[1]);
  });
}

}  // namespace attn
