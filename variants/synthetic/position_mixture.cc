// Products of tiles of 64 × 64 entries of the matrix, read in place. A tile on the diagonal is
// copied with zeros above it. See position_mixture.h.
#include "variants/synthetic/position_mixture.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"

namespace attn {
namespace {

constexpr int64_t kTile = kPanel;
constexpr int64_t kDepth = 4 * kTile;  // rows of 64 columns that stay in the second-level cache

struct Sizes {
  int64_t batch, len, cols, longest;
  bool causal;
  int64_t tiles() const { return (len + kTile - 1) / kTile; }
};

// Entries [at, at + count) of both axes, zeros above the diagonal.
void copy_lower(const real* matrix, int64_t longest, int64_t at, int64_t count, real* to) {
  for (int64_t i = 0; i < count; ++i) {
    const real* const from = matrix + (at + i) * longest + at;
    std::copy_n(from, i + 1, to + i * kTile);
    std::fill(to + i * kTile + i + 1, to + (i + 1) * kTile, real(0));
  }
}

// to [rows, cols] += left [rows, depth] · right [depth, cols]
void add(int64_t rows, int64_t depth, int64_t cols, Left left, const real* right, real* to) {
  for (int64_t k = 0; k < depth; k += kDepth)
    for (int64_t c = 0; c < cols; c += kPanel)
      add_product(rows, std::min(kPanel, cols - c), std::min(kDepth, depth - k),
                  {left.data + k * left.step, left.row, left.step}, {right + k * cols + c, cols},
                  to + c, cols);
}

void mix(const Sizes& s, const real* matrix, const real* rows, real* out) {
  run_tasks(s.batch * s.tiles(), kTile * kTile, [&](int64_t task, real* work) {
    const Mark mark(Part::products);
    const int64_t first = task % s.tiles() * kTile, count = std::min(kTile, s.len - first);
    const int64_t entry = task / s.tiles() * s.len * s.cols;
    real* const to = out + entry + first * s.cols;
    std::fill_n(to, count * s.cols, real(0));
    add(count, s.causal ? first : s.len, s.cols, {matrix + first * s.longest, s.longest, 1},
        rows + entry, to);
    if (!s.causal) return;
    copy_lower(matrix, s.longest, first, count, work);
    add(count, count, s.cols, {work, kTile, 1}, rows + entry + first * s.cols, to);
  });
}

void add_row_gradient(const Sizes& s, const real* matrix, const real* grad, real* to) {
  run_tasks(s.batch * s.tiles(), kTile * kTile, [&](int64_t task, real* work) {
    const Mark mark(Part::products);
    const int64_t first = task % s.tiles() * kTile, count = std::min(kTile, s.len - first);
    const int64_t entry = task / s.tiles() * s.len * s.cols;
    real* const mine = to + entry + first * s.cols;
    const int64_t begin = s.causal ? first + count : 0;  // of the rows of the matrix
    add(count, s.len - begin, s.cols, {matrix + begin * s.longest + first, 1, s.longest},
        grad + entry + begin * s.cols, mine);
    if (!s.causal) return;
    copy_lower(matrix, s.longest, first, count, work);
    add(count, count, s.cols, {work, 1, kTile}, grad + entry + first * s.cols, mine);
  });
}

void add_matrix_gradient(const Sizes& s, const real* rows, const real* grad, real* matrix) {
  const int64_t packed_size = padded_reals(packed_reals(kTile, s.cols));
  run_tasks(s.tiles(), packed_size + kTile * kTile, [&](int64_t task, real* work) {
    const Mark mark(Part::products);
    const int64_t first = task * kTile, count = std::min(kTile, s.len - first);
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t entry = b * s.len * s.cols;
      pack_transposed(rows + entry + first * s.cols, count, s.cols, s.cols, work);
      const Right right = packed(work, s.cols);
      const int64_t begin = s.causal ? first + count : 0;
      const real* const from = grad + entry;
      add_product(s.len - begin, count, s.cols, {from + begin * s.cols, s.cols}, right,
                  matrix + begin * s.longest + first, s.longest);
      if (!s.causal) continue;
      real* const tile = work + packed_size;
      product(count, count, s.cols, {from + first * s.cols, s.cols}, right, tile, kTile);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j <= i; ++j)
          matrix[(first + i) * s.longest + first + j] += tile[i * kTile + j];
    }
  });
}

}  // namespace

double mixed_pairs(int64_t len, bool causal) {
  if (!causal) return static_cast<double>(len) * static_cast<double>(len);
  double pairs = 0;
  for (int64_t first = 0; first < len; first += kTile) {
    const int64_t count = std::min(kTile, len - first);
    pairs += static_cast<double>(count * (first + count));
  }
  return pairs;
}

Var position_mixture(const Var& matrix, const Var& rows, bool causal) {
  const Sizes s{rows.dim(0), rows.dim(1), rows.dim(2), matrix.dim(0), causal};
  ATTN_CHECK(matrix.shape() == Shape({s.longest, s.longest}) && s.longest >= s.len,
             "a matrix of {} for {}", matrix.shape().str(), rows.shape().str());
  const Tensor out(rows.shape());
  const double flops = 2 * static_cast<double>(s.batch * s.cols) * mixed_pairs(s.len, causal);
  mix(s, matrix.value().data(), rows.value().data(), out.data());
  count_flops(flops);
  return custom_op(
      out, {matrix, rows},
      [s, flops, by = matrix.value(), from = rows.value()](const Tensor& grad,
                                                           std::span<Tensor> grads) {
        if (grads[0].defined()) add_matrix_gradient(s, from.data(), grad.data(), grads[0].data());
        if (grads[1].defined()) add_row_gradient(s, by.data(), grad.data(), grads[1].data());
        count_flops((grads[0].defined() ? flops : 0) + (grads[1].defined() ? flops : 0));
      });
}

}  // namespace attn
