// Forward and backward of the projection along the sequence; n: length, r: rank. A task computes
// some rows of the result: ranks, or positions. Positions are read in cache-sized blocks.
#include "variants/lowrank/sequence_projection.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

struct Projection {
  Tensor weight;  // [heads or 1, rank, max_len]
  Tensor x;       // [batch, heads, len, dim]
  std::vector<int64_t> lengths;

  int64_t rank() const { return weight.dim(1); }
  int64_t dim() const { return x.dim(3); }
  int64_t weight_row() const { return weight.dim(2); }
  int64_t heads() const { return x.dim(0) * x.dim(1); }
  int64_t length(int64_t head) const {
    return lengths.empty() ? x.dim(2) : lengths[static_cast<size_t>(head / x.dim(1))];
  }
  int64_t weight_of(int64_t head) const { return weight.dim(0) == 1 ? 0 : head % x.dim(1); }
  const real* weights(int64_t head) const {
    return weight.data() + weight_of(head) * rank() * weight_row();
  }
  const real* rows(int64_t head, int64_t first) const {
    return x.data() + (head * x.dim(2) + first) * dim();
  }
  void count(int64_t rows, int64_t cols) const {
    count_flops(2 * static_cast<double>(rows * cols * dim()));
  }
};

constexpr int64_t kDepth = 128;      // positions multiplied at once: 128 rows of 64 fill half of L1
constexpr int64_t kPositions = 128;  // of a task that owns positions

// Ranks of a task, in whole tiles of product(): all, unless heads alone would leave threads idle.
int64_t task_ranks(const Projection& p) {
  const int64_t parts = p.heads() % threads() == 0 ? 1 : threads();
  return ((p.rank() + parts - 1) / parts + kTileRows - 1) / kTileRows * kTileRows;
}

void project(const Projection& p, const Tensor& out) {
  const Mark mark(Part::projections);
  const int64_t ranks = task_ranks(p), blocks = (p.rank() + ranks - 1) / ranks, d = p.dim();
  run_tasks(p.heads() * blocks, 0, [&](int64_t task, real*) {
    const int64_t head = task / blocks, first = task % blocks * ranks, n = p.length(head);
    const int64_t rows = std::min(ranks, p.rank() - first);
    real* const to = out.data() + (head * p.rank() + first) * d;
    const real* const weight = p.weights(head) + first * p.weight_row();
    product(rows, d, std::min(n, kDepth), {weight, p.weight_row()}, {p.rows(head, 0), d}, to, d);
    for (int64_t k = kDepth; k < n; k += kDepth)
      add_product(rows, d, std::min(n - k, kDepth), {weight + k, p.weight_row()},
                  {p.rows(head, k), d}, to, d);
    p.count(rows, n);
  });
}

// A block of the weights is copied first: its columns lie max_len apart, often a power of 2, and
// would share one set of the cache.
void add_input_gradient(const Projection& p, const Tensor& grad, const Tensor& grad_x) {
  const Mark mark(Part::projections);
  constexpr int64_t kRow = kPositions + 64 / sizeof(real);
  const int64_t blocks = (p.x.dim(2) + kPositions - 1) / kPositions, d = p.dim();
  run_tasks(p.heads() * blocks, p.rank() * kRow, [&](int64_t task, real* copy) {
    const int64_t head = task / blocks, first = task % blocks * kPositions;
    const int64_t rows = std::min(kPositions, p.length(head) - first);
    if (rows <= 0) return;
    const real* const weight = p.weights(head) + first;
    for (int64_t r = 0; r < p.rank(); ++r)
      std::copy_n(weight + r * p.weight_row(), rows, copy + r * kRow);
    add_product(rows, d, p.rank(), {copy, 1, kRow}, {grad.data() + head * p.rank() * d, d},
                grad_x.data() + (head * p.x.dim(2) + first) * d, d);
    p.count(rows, p.rank());
  });
}

// A task owns some positions of one projection matrix and sums over the heads that share it.
void add_weight_gradient(const Projection& p, const Tensor& grad, const Tensor& grad_weight) {
  const Mark mark(Part::projections);
  const int64_t blocks = (p.x.dim(2) + kPositions - 1) / kPositions, d = p.dim();
  run_tasks(p.weight.dim(0) * blocks, packed_reals(kPositions, d), [&](int64_t task, real* panels) {
    const int64_t matrix = task / blocks, first = task % blocks * kPositions;
    real* const to = grad_weight.data() + matrix * p.rank() * p.weight_row() + first;
    for (int64_t head = 0; head < p.heads(); ++head) {
      const int64_t cols = std::min(kPositions, p.length(head) - first);
      if (p.weight_of(head) != matrix || cols <= 0) continue;
      pack_transposed(p.rows(head, first), cols, d, d, panels);
      add_product(p.rank(), cols, d, {grad.data() + head * p.rank() * d, d}, packed(panels, d), to,
                  p.weight_row());
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

Cost projected_cost(const AttentionShape& shape, int64_t rank, int64_t matrices) {
  AttentionShape projected = shape;
  projected.kv_len = rank;
  const double heads = static_cast<double>(shape.batch * shape.heads),
               keys = static_cast<double>(shape.kv_len);
  const double slots = heads * static_cast<double>(rank * shape.head_dim);
  Cost cost = softmax_cost(projected);
  cost.flops += 4 * slots * keys;
  cost.backward_flops += 8 * slots * keys;
  cost.bytes +=
      sizeof(real) * keys *
      (2 * heads * static_cast<double>(shape.head_dim) + static_cast<double>(matrices * rank));
  cost.peak_bytes += 2 * sizeof(real) * slots;
  cost.state_bytes = 0;
  return cost;
}

}  // namespace attn
