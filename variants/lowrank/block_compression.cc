// Forward and backward of the compression of blocks. A block is contiguous in memory, so that all
// blocks of a head are the rows of one matrix [blocks, stride·dim], which is multiplied in place;
// the last block may lack rows.
#include "variants/lowrank/block_compression.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/blocked_product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

struct Blocks {
  Tensor x;       // [batch, heads, len, dim]
  Tensor weight;  // [heads, stride, dim, dim]
  std::vector<int64_t, Recycled<int64_t>> lengths;
  int64_t nulls = 0;

  int64_t heads() const { return x.dim(0) * x.dim(1); }
  int64_t of_weights(int64_t head) const { return head % x.dim(1); }
  int64_t dim() const { return x.dim(3); }
  int64_t wide() const { return weight.dim(1) * dim(); }  // numbers of a block
  int64_t slots() const { return nulls + compressed_blocks(x.dim(2), weight.dim(1)); }
  int64_t length(int64_t head) const {
    return lengths.empty() ? x.dim(2) : lengths[static_cast<size_t>(head / x.dim(1))];
  }
  int64_t whole(int64_t head) const { return length(head) / weight.dim(1); }
  // Numbers of the block after the whole ones.
  int64_t rest(int64_t head) const { return length(head) % weight.dim(1) * dim(); }
  const real* rows(int64_t head) const { return x.data() + head * x.dim(2) * dim(); }
  const real* matrix(int64_t head) const {
    return weight.data() + of_weights(head) * wide() * dim();
  }
  real* slot(const Tensor& of, int64_t head, int64_t block) const {
    return of.data() + (head * slots() + nulls + block) * dim();
  }
  void count(int64_t head) const {
    count_flops(2 * static_cast<double>(length(head) * dim() * dim()));
  }
};

// Of one product with all rows of blocks; the single row of a last block needs no more.
int64_t work_reals(int64_t blocks, int64_t wide, int64_t dim) {
  return std::max({blocked_product_reals(blocks, dim, wide, {nullptr, dim, 1}),
                   blocked_product_reals(blocks, wide, dim, {nullptr, 1, dim}),
                   blocked_product_reals(wide, dim, blocks, {nullptr, dim, 1})});
}

void compress(const Blocks& p, const real* bias, const real* null_row, const Tensor& out) {
  const Mark mark(Part::projections);
  const int64_t d = p.dim(), wide = p.wide();
  const int64_t reals = blocked_product_reals(p.slots(), d, wide, {nullptr, d, 1});
  run_tasks(p.heads(), reals, [&](int64_t head, real* work) {
    const int64_t whole = p.whole(head), rest = p.rest(head), at = p.of_weights(head) * d;
    const int64_t valid = whole + (rest > 0);
    real* const to = p.slot(out, head, 0);
    if (null_row) std::copy_n(null_row + at, d, to - d);
    for (int64_t s = 0; s < valid; ++s)
      bias ? static_cast<void>(std::copy_n(bias + at, d, to + s * d))
           : static_cast<void>(std::fill_n(to + s * d, d, real(0)));
    std::fill_n(to + valid * d, (p.slots() - p.nulls - valid) * d, real(0));
    const Left matrix{p.matrix(head), d, 1};
    if (whole > 0)
      blocked_product(whole, d, wide, {p.rows(head), wide, 1}, matrix, to, d, true, work);
    if (rest > 0)
      blocked_product(1, d, rest, {p.rows(head) + whole * wide, wide, 1}, matrix, to + whole * d, d,
                      true, work);
    p.count(head);
  });
}

void add_row_gradient(const Blocks& p, const Tensor& grad, const Tensor& to) {
  const int64_t d = p.dim(), wide = p.wide();
  run_tasks(p.heads(), work_reals(p.slots(), wide, d), [&](int64_t head, real* work) {
    const int64_t whole = p.whole(head), rest = p.rest(head);
    real* const rows = to.data() + head * p.x.dim(2) * d;
    const Left transposed{p.matrix(head), 1, d};
    if (whole > 0)
      blocked_product(whole, wide, d, {p.slot(grad, head, 0), d, 1}, transposed, rows, wide, true,
                      work);
    if (rest > 0)
      blocked_product(1, rest, d, {p.slot(grad, head, whole), d, 1}, transposed,
                      rows + whole * wide, wide, true, work);
    p.count(head);
  });
}

// A task owns the weights of one head and sums over the batch.
void add_block_weight_gradient(const Blocks& p, const Tensor& grad, const Tensor& to) {
  const int64_t d = p.dim(), wide = p.wide();
  run_tasks(p.x.dim(1), work_reals(p.slots(), wide, d), [&](int64_t own, real* work) {
    for (int64_t head = own; head < p.heads(); head += p.x.dim(1)) {
      const int64_t whole = p.whole(head), rest = p.rest(head);
      real* const matrix = to.data() + own * wide * d;
      if (whole > 0)
        blocked_product(wide, d, whole, {p.rows(head), 1, wide}, {p.slot(grad, head, 0), d, 1},
                        matrix, d, true, work);
      if (rest > 0)
        blocked_product(rest, d, 1, {p.rows(head) + whole * wide, 1, wide},
                        {p.slot(grad, head, whole), d, 1}, matrix, d, true, work);
      p.count(head);
    }
  });
}

void add_bias_gradient(const Blocks& p, const Tensor& grad, const Tensor& to) {
  for (int64_t head = 0; head < p.heads(); ++head)
    add_column_sums(to.data() + p.of_weights(head) * p.dim(), p.slot(grad, head, 0),
                    p.whole(head) + (p.rest(head) > 0), p.dim());
}

void add_null_gradient(const Blocks& p, const Tensor& grad, const Tensor& to) {
  for (int64_t head = 0; head < p.heads(); ++head)
    add_column_sums(to.data() + p.of_weights(head) * p.dim(), p.slot(grad, head, -1), 1, p.dim());
}

}  // namespace

Var compress_blocks(const Var& x, const Compression& by, std::span<const int64_t> lengths) {
  const Blocks p{x.value(),
                 by.weight.value(),
                 {lengths.begin(), lengths.end()},
                 by.null_row.defined() ? 1 : 0};
  ATTN_CHECK(p.weight.dim(0) == x.dim(1) && p.weight.dim(3) == x.dim(3),
             "a compression of {} does not fit {}", p.weight.shape().str(), x.shape().str());
  const auto data = [](const Var& row) { return row.defined() ? row.value().data() : nullptr; };
  const Tensor out(x.shape().with(2, p.slots()));
  compress(p, data(by.bias), data(by.null_row), out);
  return custom_op(out, {x, by.weight, by.bias, by.null_row},
                   [p](const Tensor& grad, std::span<Tensor> grads) {
                     const Mark mark(Part::projections);
                     if (grads[0].defined()) add_row_gradient(p, grad, grads[0]);
                     if (grads[1].defined()) add_block_weight_gradient(p, grad, grads[1]);
                     if (grads[2].defined()) add_bias_gradient(p, grad, grads[2]);
                     if (grads[3].defined()) add_null_gradient(p, grad, grads[3]);
                   });
}

int64_t compression_bytes(int64_t heads, int64_t len, int64_t stride, int64_t dim) {
  return workspace_bytes(heads, blocked_product_reals(compressed_blocks(len, stride), dim,
                                                      stride * dim, {nullptr, dim, 1}));
}

void compress_block(const Compression& by, int64_t head, const real* rows, real* to) {
  const int64_t d = by.dim(), wide = by.stride() * d;
  for (int64_t c = 0; c < d; ++c)
    to[c] = by.bias.defined() ? by.bias.value()[head * d + c] : real(0);
  add_product(1, d, wide, {rows, wide}, {by.weight.value().data() + head * wide * d, d}, to, d);
}

}  // namespace attn
