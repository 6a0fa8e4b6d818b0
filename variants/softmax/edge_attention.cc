// Softmax attention along edges; see edge_attention.h. Forward 4·d FLOPs an edge and head, backward
// 10·d: weights are recomputed; each head is one task and adds to its own keys, so that no locks
// are needed.
#include "variants/softmax/edge_attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/attention_rows.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kRows = 64;  // queries of a task: some 10 µs at 10 edges each

int64_t longest_list(const Edges& edges) {
  int64_t most = 0;
  for (size_t r = 0; r + 1 < edges.first.size(); ++r)
    most = std::max(most, edges.first[r + 1] - edges.first[r]);
  return most;
}

struct Problem {
  Tensor q, k, v;
  Mask mask;  // holds the edges as long as a backward may need them

  int64_t heads() const { return q.dim(0) * q.dim(1); }  // of all batch entries
  real scale() const { return static_cast<real>(1 / std::sqrt(static_cast<double>(q.dim(3)))); }
  // The keys that query i of head h sees: they ascend, so that lengths and causality cut the end.
  std::span<const int32_t> keys(int64_t h, int64_t i) const {
    const int64_t entry = h / q.dim(1), row = entry * q.dim(2) + i;
    int64_t end = k.dim(2);
    if (!mask.kv_lengths.empty()) end = mask.kv_lengths[static_cast<size_t>(entry)];
    if (mask.causal) end = std::min(end, i + k.dim(2) - q.dim(2) + 1);
    const int32_t* const all = mask.edges->keys.data();
    const int32_t *const from = all + mask.edges->first[static_cast<size_t>(row)],
                         *const to = all + mask.edges->first[static_cast<size_t>(row + 1)];
    return {from, std::lower_bound(from, to, end)};
  }
  int64_t longest() const { return longest_list(*mask.edges); }
};

real* row(const Tensor& t, int64_t head, int64_t i) {
  return t.data() + (head * t.dim(2) + i) * t.dim(3);
}
// Where a gradient is not wanted: null.
real* row_if(const Tensor& t, int64_t head, int64_t i) {
  return t.defined() ? row(t, head, i) : nullptr;
}

// Prefetches a row, so that scattered rows are loaded in parallel. Any address is allowed.
void fetch(const real* from, int64_t size) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(real));
  for (int64_t c = 0; c < size; c += kLine) __builtin_prefetch(from + c);
}

// weights[e]: of the query's e-th key. `keys` is not empty.
void fill_weights(const Problem& p, int64_t head, int64_t i, std::span<const int32_t> keys,
                  real* weights) {
  const int64_t dim = p.q.dim(3);
  const real *const query = row(p.q, head, i), *const all_keys = row(p.k, head, 0);
  const real scale = p.scale();
  // Lists lie one behind the other: what follows this one is seen by the next query.
  constexpr std::ptrdiff_t kAhead = 16;  // edges
  const std::vector<int32_t>& listed = p.mask.edges->keys;
  const real* const all_values = row(p.v, head, 0);
  for (size_t e = 0; e < keys.size(); ++e) {
    const int32_t* const at = keys.data() + e;
    if (listed.data() + listed.size() - at > kAhead) fetch(all_keys + at[kAhead] * dim, dim);
    fetch(all_values + *at * p.v.dim(3), p.v.dim(3));
    weights[e] = row_dot(query, all_keys + *at * dim, dim) * scale;
  }
  const int64_t count = std::ssize(keys);
  const real factor = 1 / exp_row(count, weights, 1, max_in_row(weights, count), weights);
  for (int64_t e = 0; e < count; ++e) weights[e] *= factor;
}

ListedRows rows_of(const Tensor& t, std::span<const int32_t> keys) {
  return {std::ssize(keys), t.dim(3), keys.data()};
}

void forward_row(const Problem& p, int64_t head, int64_t i, real* weights, const Tensor& out) {
  const std::span<const int32_t> keys = p.keys(head, i);
  if (!keys.empty()) fill_weights(p, head, i, keys, weights);
  weighted_rows(rows_of(p.v, keys), weights, row(p.v, head, 0), row(out, head, i));
}

// Adds the gradients from query i. `work` has twice the longest list: weights, then gradients dP.
void backward_row(const Problem& p, int64_t head, int64_t i, real* work, const Tensor& grad,
                  std::span<Tensor> grads) {
  const std::span<const int32_t> keys = p.keys(head, i);
  if (keys.empty()) return;
  const int64_t count = std::ssize(keys);
  fill_weights(p, head, i, keys, work);
  real *const weights = work, *const grad_logits = work + count;
  dots_and_add(rows_of(p.v, keys), row(grad, head, i), row(p.v, head, 0), weights, grad_logits,
               row_if(grads[2], head, 0));
  const real mean = row_dot(weights, grad_logits, count), scale = p.scale();
  for (int64_t e = 0; e < count; ++e)  // now of the dot products
    grad_logits[e] = weights[e] * (grad_logits[e] - mean) * scale;
  sum_and_add(rows_of(p.k, keys), row(p.q, head, i), row(p.k, head, 0), grad_logits,
              row_if(grads[0], head, i), row_if(grads[1], head, 0));
}

double visible_edges(const Problem& p, int64_t head, int64_t begin, int64_t end) {
  double count = 0;
  for (int64_t i = begin; i < end; ++i) count += static_cast<double>(p.keys(head, i).size());
  return count;
}

void forward(const Problem& p, const Tensor& out) {
  const Mark mark(Part::edges);
  const int64_t n = p.q.dim(2), blocks = (n + kRows - 1) / kRows;
  run_tasks(p.heads() * blocks, p.longest(), [&](int64_t task, real* work) {
    const int64_t head = task / blocks, begin = task % blocks * kRows,
                  end = std::min(n, begin + kRows);
    for (int64_t i = begin; i < end; ++i) forward_row(p, head, i, work, out);
    count_flops(2 * visible_edges(p, head, begin, end) *
                static_cast<double>(p.q.dim(3) + p.v.dim(3)));
  });
}

void backward(const Problem& p, const Tensor& grad, std::span<Tensor> grads) {
  const Mark mark(Part::edges);
  run_tasks(p.heads(), 2 * p.longest(), [&](int64_t head, real* work) {
    for (int64_t i = 0; i < p.q.dim(2); ++i) backward_row(p, head, i, work, grad, grads);
    const auto of_keys =
                   static_cast<double>((1 + grads[0].defined() + grads[1].defined()) * p.q.dim(3)),
               of_values = static_cast<double>((1 + grads[2].defined()) * p.v.dim(3));
    count_flops(2 * visible_edges(p, head, 0, p.q.dim(2)) * (of_keys + of_values));
  });
}

}  // namespace

Var edge_attention(const Var& q, const Var& k, const Var& v, const Mask& mask) {
  ATTN_CHECK(mask.edges, "attention along edges was given none");
  const Problem p{q.value(), k.value(), v.value(), mask};
  const Tensor out(q.shape().with(3, v.dim(3)));
  forward(p, out);
  return custom_op(out, {q, k, v},
                   [p](const Tensor& grad, std::span<Tensor> grads) { backward(p, grad, grads); });
}

Cost edge_cost(const AttentionShape& s, const Edges& edges) {
  const double heads = static_cast<double>(s.batch * s.heads), size = sizeof(real),
               d = static_cast<double>(s.head_dim);
  const double rows = heads * static_cast<double>(s.q_len),
               keys = heads * static_cast<double>(s.kv_len);
  const double flops = 4 * d * heads * static_cast<double>(edges.keys.size());
  const int64_t tasks = s.batch * s.heads * ((s.q_len + kRows - 1) / kRows);
  return {.flops = flops,
          .backward_flops = 2.5 * flops,
          .bytes = size * d * 2 * (rows + keys),
          .peak_bytes =
              size * d * rows + static_cast<double>(workspace_bytes(tasks, longest_list(edges))),
          .state_bytes = size * d * 2 * keys};
}

}  // namespace attn
