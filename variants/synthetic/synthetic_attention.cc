// Forward and backward of synthetic attention; see synthetic_attention.h. The rows of weights of a
// strip of queries stay in the cache; the backward recomputes them. Forward 2·n²·d FLOPs, backward
// 4·n²·d; with q·kᵀ 4·n²·d and 10·n²·d. In the backward, a head is one task, which sums over the
// batch entries that share its logits.
#include "variants/synthetic/synthetic_attention.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "core/simd/softmax_rows.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

constexpr int64_t kRows = 12;    // queries of a strip: at 4096 keys their weights are 192 KiB
constexpr int64_t kBlock = 384;  // queries of a forward task
constexpr real kLog2e = real(1.4426950408889634);

// As declared for outer_attention, of one query and keys [0, visible), in units of log2.
void outer_row(const real* left, int64_t left_size, const real* right, int64_t visible,
               real* logits) {
  for (int64_t first = 0, part = 0; first < visible; first += left_size, ++part)
    scale_rows_to(left, std::min(left_size, visible - first), right[part] * kLog2e, logits + first);
}

// row = row·scale + bias, to units of log2.
void add_bias(const real* bias, int64_t size, real scale, real* row) {
  ATTN_INDEPENDENT
  for (int64_t j = 0; j < size; ++j) row[j] = row[j] * scale * kLog2e + bias[j] * kLog2e;
}

struct Problem {
  Tensor matrix;       // [heads, max_len, max_len], or
  Tensor left, right;  // [batch, heads, len, a] and [batch, heads, len, c]
  Tensor v;
  Mask mask;
  Tensor q, k;  // undefined, or their products / √dim are added to the matrix

  int64_t heads() const { return v.dim(1); }
  int64_t length() const { return v.dim(2); }
  int64_t dim() const { return v.dim(3); }
  real scale() const { return 1 / std::sqrt(static_cast<real>(dim())); }
  const real* rows(const Tensor& x, int64_t head, int64_t i) const {  // of q, k or v
    return x.data() + (head * length() + i) * dim();
  }
  int64_t panel_reals() const { return q.defined() ? packed_reals(length(), dim()) : 0; }
  void pack_keys(int64_t head, real* panels) const {
    if (q.defined()) pack_transposed(rows(k, head, 0), valid(head), dim(), dim(), panels);
  }
  int64_t valid(int64_t head) const {  // of all batch entries' heads
    return mask.kv_lengths.empty() ? length()
                                   : mask.kv_lengths[static_cast<size_t>(head / heads())];
  }
  int64_t visible(int64_t head, int64_t i) const {
    return mask.causal ? std::min(valid(head), i + 1) : valid(head);
  }
  // Keys that some of the rows [.., last) see.
  int64_t reach(int64_t head, int64_t last) const { return visible(head, last - 1); }
  int64_t matrix_at(int64_t head, int64_t i) const {
    return (head % heads() * matrix.dim(1) + i) * matrix.dim(2);
  }
  void fill_logits(int64_t head, int64_t i, real* row) const {
    const int64_t keys = visible(head, i), at = head * length() + i;
    if (q.defined())
      add_bias(matrix.data() + matrix_at(head, i), keys, scale(), row);
    else if (matrix.defined())
      scale_rows_to(matrix.data() + matrix_at(head, i), keys, kLog2e, row);
    else
      outer_row(left.data() + at * left.dim(3), left.dim(3), right.data() + at * right.dim(3), keys,
                row);
  }
};

int64_t stride_of(int64_t length) { return round_up(length, kPanel); }

// Weights of queries [begin, begin + rows) to keys [0, reach), zeros where masked.
void fill_weights(const Problem& p, int64_t head, const real* keys, int64_t begin, int64_t rows,
                  real* weights) {
  const int64_t stride = stride_of(p.length()), reach = p.reach(head, begin + rows);
  const int64_t cols = round_up(reach, kRowMultiple);
  real row_max[kRows], row_sum[kRows], rescale[kRows];
  if (p.q.defined()) {
    product(rows, reach, p.dim(), {p.rows(p.q, head, begin), p.dim()}, packed(keys, p.dim()),
            weights, stride);
    count_flops(2 * static_cast<double>(rows * reach * p.dim()));
  }
  {
    const Mark mark(Part::scores);
    for (int64_t r = 0; r < rows; ++r) {
      real* const row = weights + r * stride;
      p.fill_logits(head, begin + r, row);
      std::fill(row + p.visible(head, begin + r), row + cols, -kInfinity);
      row_max[r] = -kInfinity, row_sum[r] = 0;
    }
  }
  online_softmax_rows(rows, cols, weights, stride, row_max, row_sum, rescale);
  const Mark mark(Part::softmax);
  for (int64_t r = 0; r < rows; ++r)
    scale_rows_to(weights + r * stride, cols, row_sum[r] == 0 ? real(0) : 1 / row_sum[r],
                  weights + r * stride);
}

void synthetic_forward(const Problem& p, const Tensor& out) {
  const int64_t n = p.length(), d = p.dim(), blocks = (n + kBlock - 1) / kBlock;
  const int64_t panels = padded_reals(p.panel_reals()), reals = panels + kRows * stride_of(n);
  run_tasks(p.v.dim(0) * p.heads() * blocks, reals, [&](int64_t task, real* packed_keys) {
    const int64_t head = task / blocks, last = std::min(n, (task % blocks + 1) * kBlock);
    real* const work = packed_keys + panels;
    p.pack_keys(head, packed_keys);
    double pairs = 0;
    for (int64_t i = task % blocks * kBlock; i < last; i += kRows) {
      const int64_t rows = std::min(kRows, last - i), keys = p.reach(head, i + rows);
      fill_weights(p, head, packed_keys, i, rows, work);
      product(rows, d, keys, {work, stride_of(n)}, {p.rows(p.v, head, 0), d},
              out.data() + (head * n + i) * d, d);
      pairs += static_cast<double>(rows * keys);
    }
    count_flops(2 * pairs * static_cast<double>(d));
  });
}

class Gradient {
 public:
  // grads: of the matrix, or of left and right; then of v; then of q and k, if they are.
  Gradient(const Problem& p, const Tensor& grad, std::span<Tensor> grads)
      : p_(p), grad_(grad), grads_(grads), stride_(stride_of(p.length())) {}

  void run() const {
    const int64_t panels = padded_reals(packed_reals(p_.length(), p_.dim())),
                  keys = padded_reals(p_.panel_reals());
    run_tasks(p_.heads(), panels + keys + 2 * kRows * stride_, [&](int64_t h, real* work) {
      for (int64_t b = 0; b < p_.v.dim(0); ++b)
        add_head(b * p_.heads() + h, work, work + panels, work + panels + keys);
    });
  }

 private:
  const Tensor& grad_v() const { return grads_[p_.matrix.defined() ? 1 : 2]; }

  void add_head(int64_t head, real* values, real* packed_keys, real* weights) const {
    const int64_t n = p_.length(), d = p_.dim();
    real* const grad_logits = weights + kRows * stride_;
    pack_transposed(p_.rows(p_.v, head, 0), p_.valid(head), d, d, values);
    p_.pack_keys(head, packed_keys);
    for (int64_t i = 0; i < n; i += kRows) {
      const int64_t rows = std::min(kRows, n - i), keys = p_.reach(head, i + rows);
      if (keys == 0) continue;
      const real* const from = grad_.data() + (head * n + i) * d;
      fill_weights(p_, head, packed_keys, i, rows, weights);
      if (grad_v().defined())
        add_product(keys, d, rows, {weights, 1, stride_}, {from, d}, grad_v().data() + head * n * d,
                    d);
      product(rows, keys, d, {from, d}, packed(values, d), grad_logits, stride_);
      add_rows(head, {i, i + rows}, weights, grad_logits);
      count_flops(4 * static_cast<double>(rows * keys * d));
      if (p_.q.defined()) add_products(head, i, rows, keys, grad_logits);
    }
  }

  // Adds the gradients of the logits to those of the queries [i, i + rows) and of all keys.
  void add_products(int64_t head, int64_t i, int64_t rows, int64_t keys, real* grad_logits) const {
    const int64_t n = p_.length(), d = p_.dim();
    {
      const Mark mark(Part::elementwise);
      for (int64_t r = 0; r < rows; ++r) {
        real* const row = grad_logits + r * stride_;
        const int64_t visible = p_.visible(head, i + r);
        scale_rows_to(row, visible, p_.scale(), row);
        std::fill(row + visible, row + keys, real(0));
      }
    }
    if (grads_[2].defined())
      add_product(rows, d, keys, {grad_logits, stride_}, {p_.rows(p_.k, head, 0), d},
                  grads_[2].data() + (head * n + i) * d, d);
    if (grads_[3].defined())
      add_product(keys, d, rows, {grad_logits, 1, stride_}, {p_.rows(p_.q, head, i), d},
                  grads_[3].data() + head * n * d, d);
    count_flops(4 * static_cast<double>(rows * keys * d));
  }

  void add_rows(int64_t head, Span queries, const real* weights, real* grad_logits) const {
    const Mark mark(Part::softmax);
    for (int64_t i = queries.begin; i < queries.end;
         ++i, weights += stride_, grad_logits += stride_)
      add_row(head, i, weights, grad_logits);
  }

  void add_row(int64_t head, int64_t i, const real* weights, real* grad_logits) const {
    const int64_t keys = p_.visible(head, i), at = head * p_.length() + i;
    const real mean = row_dot(weights, grad_logits, keys);
    for (int64_t j = 0; j < keys; ++j) grad_logits[j] = weights[j] * (grad_logits[j] - mean);
    if (p_.matrix.defined()) {
      real* const to = grads_[0].defined() ? grads_[0].data() + p_.matrix_at(head, i) : nullptr;
      for (int64_t j = 0; to && j < keys; ++j) to[j] += grad_logits[j];
      return;
    }
    const int64_t a = p_.left.dim(3), c = p_.right.dim(3);
    const real *const left = p_.left.data() + at * a, *const right = p_.right.data() + at * c;
    for (int64_t first = 0, part = 0; first < keys; first += a, ++part) {
      const int64_t count = std::min(a, keys - first);
      if (grads_[1].defined())
        grads_[1].data()[at * c + part] += row_dot(grad_logits + first, left, count);
      for (int64_t j = 0; grads_[0].defined() && j < count; ++j)
        grads_[0].data()[at * a + j] += grad_logits[first + j] * right[part];
    }
  }

  const Problem& p_;
  const Tensor& grad_;
  std::span<Tensor> grads_;
  const int64_t stride_;
};

// inputs: as the gradients above.
Var attended(const Problem& p, std::initializer_list<Var> inputs) {
  const Tensor out(p.v.shape());
  synthetic_forward(p, out);
  return custom_op(out, inputs, [p](const Tensor& grad, std::span<Tensor> grads) {
    Gradient(p, grad, grads).run();
  });
}

}  // namespace

Var rows_for_batch(const Var& x, int64_t batch, int64_t len) {
  const Mark mark(Part::gathering);
  const int64_t heads = x.dim(0), from = x.dim(1) * x.dim(2), to = len * x.dim(2);
  const Tensor out({batch, heads, len, x.dim(2)});
  for (int64_t h = 0; h < batch * heads; ++h)
    std::copy_n(x.value().data() + h % heads * from, to, out.data() + h * to);
  return custom_op(out, {x}, [=](const Tensor& grad, std::span<Tensor> grads) {
    const Mark back(Part::gathering);
    for (int64_t h = 0; h < batch * heads; ++h)
      for (int64_t i = 0; i < to; ++i) grads[0][h % heads * from + i] += grad[h * to + i];
  });
}

Var matrix_attention(const Var& logits, const Var& v, const Mask& mask) {
  ATTN_CHECK(logits.dim(1) >= v.dim(2), "{} positions do not fit logits of {}", v.dim(2),
             logits.shape().str());
  return attended({logits.value(), {}, {}, v.value(), mask, {}, {}}, {logits, v});
}

Var biased_attention(const Var& q, const Var& k, const Var& v, const Var& bias, const Mask& mask) {
  ATTN_CHECK(bias.dim(1) >= v.dim(2), "{} positions do not fit a bias of {}", v.dim(2),
             bias.shape().str());
  return attended({bias.value(), {}, {}, v.value(), mask, q.value(), k.value()}, {bias, v, q, k});
}

Var outer_attention(const Var& left, const Var& right, const Var& v, const Mask& mask) {
  ATTN_CHECK(left.dim(3) * right.dim(3) >= v.dim(2), "{} positions do not fit {} times {} logits",
             v.dim(2), left.dim(3), right.dim(3));
  return attended({{}, left.value(), right.value(), v.value(), mask, {}, {}}, {left, right, v});
}

Cost synthetic_cost(const AttentionShape& s, bool products) {
  const double rows = static_cast<double>(s.batch * s.heads * s.q_len),
               d = static_cast<double>(s.head_dim), n = static_cast<double>(s.kv_len);
  const int64_t tasks = s.batch * s.heads * ((s.q_len + kBlock - 1) / kBlock);
  const double pairs = s.causal ? rows * (n + kRows) / 2 : rows * n;
  const int64_t panels = products ? padded_reals(packed_reals(s.kv_len, s.head_dim)) : 0;
  return {.flops = (products ? 4 : 2) * pairs * d,
          .backward_flops = (products ? 10 : 4) * pairs * d,
          .bytes = sizeof(real) * (products ? 4 : 2) * rows * d,
          .peak_bytes =
              sizeof(real) * rows * d +
              static_cast<double>(workspace_bytes(tasks, panels + kRows * stride_of(s.kv_len)))};
}

}  // namespace attn
