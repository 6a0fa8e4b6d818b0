// Softmax attention along edges; see edge_attention.h. Forward 4·d FLOPs an edge and head, backward
// 10·d: weights are recomputed; each head is one task and adds to its own keys, so that no locks
// are needed.
#include "variants/softmax/edge_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "core/base/cache.h"
#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/fetch.h"
#include "core/simd/listed_rows.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

// Keys and values of a head that fill the second-level cache so many times are prefetched. With
// fewer the processor hides the third level by itself, and prefetching costs a tenth.
constexpr int64_t kFetchedCaches = 4;
constexpr int64_t kEdgeRows = 64;  // queries of a task: some 10 µs at 10 edges each

int64_t longest_list(const Edges& edges) {
  int64_t most = 0;
  for (size_t r = 0; r + 1 < edges.first.size(); ++r)
    most = std::max(most, edges.first[r + 1] - edges.first[r]);
  return most;
}

// The rows of all heads of a tensor [batch, heads, len, dim]. A shape is read here once, since a
// query with few edges takes only some 100 ns.
struct HeadRows {
  real* data = nullptr;  // null: a gradient that is not wanted
  int64_t len = 0, dim = 0;
  HeadRows() = default;
  explicit HeadRows(const Tensor& t) {
    if (t.defined()) *this = HeadRows(t.data(), t.dim(2), t.dim(3));
  }
  HeadRows(real* from, int64_t rows, int64_t width) : data(from), len(rows), dim(width) {}
  real* row(int64_t head, int64_t i) const {
    return data ? data + (head * len + i) * dim : nullptr;
  }
  ListedRows listed(std::span<const int32_t> keys) const {
    return {std::ssize(keys), dim, keys.data()};
  }
};

struct EdgeProblem {
  EdgeProblem(const Tensor& queries, const Tensor& keys, const Tensor& values, const Mask& given)
      : tensors{queries, keys, values},
        mask(given),
        q(queries),
        k(keys),
        v(values),
        heads_of_entry(queries.dim(1)),
        heads(queries.dim(0) * queries.dim(1)),
        scale(static_cast<real>(1 / std::sqrt(static_cast<double>(q.dim)))),
        fetches((k.len * k.dim + v.len * v.dim) * static_cast<int64_t>(sizeof(real)) >
                kFetchedCaches * second_level_cache()) {}

  std::array<Tensor, 3> tensors;
  Mask mask;  // holds the edges as long as a backward may need them
  HeadRows q, k, v;
  int64_t heads_of_entry, heads;  // heads: of all batch entries
  real scale;
  bool fetches;  // rows before they are read

  // The keys that query i of head h sees: they ascend, so that lengths and causality cut the end.
  std::span<const int32_t> keys(int64_t h, int64_t i) const {
    const int64_t entry = h / heads_of_entry, row = entry * q.len + i;
    int64_t end = k.len;
    if (!mask.kv_lengths.empty()) end = mask.kv_lengths[static_cast<size_t>(entry)];
    if (mask.causal) end = std::min(end, i + k.len - q.len + 1);
    const int32_t* const all = mask.edges->keys.data();
    const int32_t *const from = all + mask.edges->first[static_cast<size_t>(row)],
                         *const to = all + mask.edges->first[static_cast<size_t>(row + 1)];
    if (end == k.len) return {from, to};
    return {from, std::lower_bound(from, to, end)};
  }
  int64_t longest() const { return longest_list(*mask.edges); }
};

// Prefetches the values of these keys and the keys of the edges to come.
void fetch_rows(const EdgeProblem& p, std::span<const int32_t> keys, const real* all_keys,
                const real* all_values) {
  // Lists lie one behind the other: what follows this one is seen by the next query.
  constexpr std::ptrdiff_t kAhead = 16;  // edges
  const std::vector<int32_t>& listed = p.mask.edges->keys;
  const int32_t* const last = listed.data() + listed.size();
  for (const int32_t& key : keys) {
    if (last - &key > kAhead) fetch_row(all_keys + (&key)[kAhead] * p.k.dim, p.k.dim);
    fetch_row(all_values + key * p.v.dim, p.v.dim);
  }
}

// weights[e]: of the query's e-th key. `keys` is not empty.
void fill_edge_weights(const EdgeProblem& p, int64_t head, int64_t i, std::span<const int32_t> keys,
                       real* weights) {
  const real *const all_keys = p.k.row(head, 0), *const all_values = p.v.row(head, 0);
  const int64_t count = std::ssize(keys);
  if (p.fetches) fetch_rows(p, keys, all_keys, all_values);
  dots_with_rows(p.k.listed(keys), p.q.row(head, i), all_keys, weights);
  const real top = p.scale * max_in_row(weights, count);
  const real factor = 1 / exp_row(count, weights, p.scale, top, weights);
  for (int64_t e = 0; e < count; ++e) weights[e] *= factor;
}

void forward_row(const EdgeProblem& p, int64_t head, int64_t i, real* weights,
                 const HeadRows& out) {
  const std::span<const int32_t> keys = p.keys(head, i);
  if (!keys.empty()) fill_edge_weights(p, head, i, keys, weights);
  weighted_rows(p.v.listed(keys), weights, p.v.row(head, 0), out.row(head, i));
}

struct Gradients {
  HeadRows out, q, k, v;
};

// Adds the gradients from query i. `work` has twice the longest list: weights, then gradients dP.
void backward_row(const EdgeProblem& p, int64_t head, int64_t i, real* work,
                  const Gradients& grad) {
  const std::span<const int32_t> keys = p.keys(head, i);
  if (keys.empty()) return;
  const int64_t count = std::ssize(keys);
  fill_edge_weights(p, head, i, keys, work);
  real *const weights = work, *const grad_logits = work + count;
  dots_and_add(p.v.listed(keys), grad.out.row(head, i), p.v.row(head, 0), weights, grad_logits,
               grad.v.row(head, 0));
  const real mean = row_dot(weights, grad_logits, count);
  for (int64_t e = 0; e < count; ++e)  // now of the dot products
    grad_logits[e] = weights[e] * (grad_logits[e] - mean) * p.scale;
  sum_and_add(p.k.listed(keys), p.q.row(head, i), p.k.row(head, 0), grad_logits,
              grad.q.row(head, i), grad.k.row(head, 0));
}

double visible_edges(const EdgeProblem& p, int64_t head, int64_t begin, int64_t end) {
  double count = 0;
  for (int64_t i = begin; i < end; ++i) count += static_cast<double>(p.keys(head, i).size());
  return count;
}

void forward(const EdgeProblem& p, const Tensor& out) {
  const Mark mark(Part::edges);
  const int64_t n = p.q.len, blocks = (n + kEdgeRows - 1) / kEdgeRows;
  const HeadRows to(out);
  run_tasks(p.heads * blocks, p.longest(), [&](int64_t task, real* work) {
    const int64_t head = task / blocks, begin = task % blocks * kEdgeRows,
                  end = std::min(n, begin + kEdgeRows);
    for (int64_t i = begin; i < end; ++i) forward_row(p, head, i, work, to);
    count_flops(2 * visible_edges(p, head, begin, end) * static_cast<double>(p.q.dim + p.v.dim));
  });
}

void backward(const EdgeProblem& p, const Tensor& grad, std::span<Tensor> grads) {
  const Mark mark(Part::edges);
  const Gradients to{HeadRows(grad), HeadRows(grads[0]), HeadRows(grads[1]), HeadRows(grads[2])};
  run_tasks(p.heads, 2 * p.longest(), [&](int64_t head, real* work) {
    for (int64_t i = 0; i < p.q.len; ++i) backward_row(p, head, i, work, to);
    const auto of_keys =
                   static_cast<double>((1 + grads[0].defined() + grads[1].defined()) * p.q.dim),
               of_values = static_cast<double>((1 + grads[2].defined()) * p.v.dim);
    count_flops(2 * visible_edges(p, head, 0, p.q.len) * (of_keys + of_values));
  });
}

}  // namespace

Var edge_attention(const Var& q, const Var& k, const Var& v, const Mask& mask) {
  ATTN_CHECK(mask.edges, "attention along edges was given none");
  const EdgeProblem p(q.value(), k.value(), v.value(), mask);
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
  const int64_t tasks = s.batch * s.heads * ((s.q_len + kEdgeRows - 1) / kEdgeRows);
  return {.flops = flops,
          .backward_flops = 2.5 * flops,
          .bytes = size * d * 2 * (rows + keys),
          .peak_bytes =
              size * d * rows + static_cast<double>(workspace_bytes(tasks, longest_list(edges))),
          .state_bytes = size * d * 2 * keys};
}

}  // namespace attn
