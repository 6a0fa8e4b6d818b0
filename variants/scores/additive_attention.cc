// Forward of additive attention; see additive_attention.h. The logits of a strip of queries are
// computed for one panel of keys at a time; online softmax and the product with values follow as in
// softmax_forward.cc. Parallel over batch × heads × tiles.
#include "variants/scores/additive_attention.h"

#include <numbers>
#include <vector>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/softmax_rows.h"
#include "variants/scores/additive_gradient.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

constexpr int64_t kPiece = PrefixPlane::kPiece, kNarrowStrip = PrefixPlane::kNarrowStrip;

struct Layout {  // offsets into a worker's workspace; transformed queries are at 0
  int64_t keys, row_max, row_sum, logits, total;

  Layout(const PrefixPlane& p, int64_t padded) {
    keys = padded_reals(p.tile_rows * padded);
    row_max = keys + kPiece * padded;
    row_sum = row_max + padded_reals(p.tile_rows);
    logits = row_sum + padded_reals(p.tile_rows);
    total = logits + kNarrowStrip * kPiece;
  }
};

class Forward {
 public:
  Forward(const AdditiveProblem& problem, const Tensor& out, const Tensor& log_sum)
      : x_(problem),
        p_(problem.plane),
        padded_(problem.padded()),
        layout_(p_, padded_),
        out_(out),
        log_sum_(log_sum) {}

  void run() const {
    run_tasks(p_.all_heads() * p_.tiles(), layout_.total, [&](int64_t task, real* work) {
      const int64_t begin = p_.tile_begin(task % p_.tiles());
      add_tile(task / p_.tiles(), begin, std::min(begin + p_.tile_rows, p_.q_len), work);
    });
  }

 private:
  void add_tile(int64_t h, int64_t begin, int64_t end, real* work) const {
    const int64_t rows = end - begin, units = p_.dim, dv = p_.value_dim;
    real* const out = out_.data() + (h * p_.q_len + begin) * dv;
    real *const row_max = work + layout_.row_max, *const row_sum = work + layout_.row_sum;
    std::fill_n(out, rows * dv, real(0));
    std::fill_n(row_max, rows, -kInfinity);
    std::fill_n(row_sum, rows, real(0));
    {
      const Mark mark(Part::scores);
      for (int64_t r = 0; r < rows; ++r)
        additive_row(x_.query(h, begin + r), units, x_.large, work + r * padded_);
    }
    const int64_t keys = p_.seen(h, end - 1);
    double pairs = 0;
    for (int64_t j = 0; j < keys; j += kPiece) {
      const int64_t cols = std::min(kPiece, keys - j);
      {
        const Mark mark(Part::scores);
        for (int64_t at = 0; at < cols; at += kPanel)
          additive_panel(x_.key(h, j + at), std::min(kPanel, cols - at), units, x_.large,
                         work + layout_.keys + at * padded_);
      }
      for (int64_t i = begin; i < end; i += kNarrowStrip) {
        const int64_t last = std::min(i + kNarrowStrip, end);
        pairs +=
            add_strip(h, i, last - i, i - begin, j, std::min(cols, p_.seen(h, last - 1) - j), work);
      }
    }
    finish(h, begin, rows, row_max, row_sum, out);
    count_flops(pairs * static_cast<double>(3 * units + 2 * dv));
  }

  double add_strip(int64_t h, int64_t i, int64_t rows, int64_t at, int64_t first, int64_t cols,
                   real* work) const {
    if (cols <= 0) return 0;
    real* const logits = work + layout_.logits;
    {
      const Mark mark(Part::scores);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; c += kPanel)
          x_.scores(h, work + (at + r) * padded_, work + layout_.keys + c * padded_,
                    logits + r * kPiece + c);
    }
    const int64_t whole = (cols + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
    p_.mask_beyond_prefix(h, i, rows, first, whole, logits, kPiece, -kInfinity);
    real rescale[kNarrowStrip];
    online_softmax_rows(rows, whole, logits, kPiece, work + layout_.row_max + at,
                        work + layout_.row_sum + at, rescale);
    add_product(rows, p_.value_dim, cols, {logits, kPiece}, {x_.value(h, first), p_.value_dim},
                out_.data() + (h * p_.q_len + i) * p_.value_dim, p_.value_dim, rescale);
    return static_cast<double>(rows * cols);
  }

  void finish(int64_t h, int64_t begin, int64_t rows, const real* row_max, const real* row_sum,
              real* out) const {
    const Mark mark(Part::softmax);
    for (int64_t r = 0; r < rows; ++r) {
      divide_row(p_.value_dim, out + r * p_.value_dim, row_sum[r], out + r * p_.value_dim);
      if (log_sum_.defined())
        log_sum_[h * p_.q_len + begin + r] =
            row_sum[r] == 0 ? kInfinity : row_max[r] + std::log2(row_sum[r]);
    }
  }

  const AdditiveProblem& x_;
  const PrefixPlane& p_;
  int64_t padded_;
  Layout layout_;
  const Tensor &out_, &log_sum_;
};

}  // namespace

AdditiveProblem::AdditiveProblem(const Tensor& queries, const Tensor& keys, const Tensor& weight,
                                 const Tensor& values, const Mask& mask)
    : plane(queries.shape(), keys.shape(), values.shape(), mask),
      a(queries),
      b(keys),
      w(weight),
      v(values),
      scaled({plane.heads, padded()}),
      large(any_large(a.data(), a.size()) || any_large(b.data(), b.size())) {
  const int64_t units = plane.dim;
  ATTN_CHECK(w.shape() == (Shape{plane.heads, units}), "weights {} for {} heads of {} units",
             w.shape().str(), plane.heads, units);
  scaled.fill(0);
  for (int64_t i = 0; i < w.size(); ++i)
    scaled[i / units * padded() + i % units] = static_cast<real>(-2 * std::numbers::log2e * w[i]);
}

Var additive_attention(const Var& a, const Var& b, const Var& weight, const Var& v,
                       const Mask& mask) {
  const AdditiveProblem problem(a.value(), b.value(), weight.value(), v.value(), mask);
  const PrefixPlane& p = problem.plane;
  const bool keep = recording({a, b, weight, v});
  const Tensor out({p.batch, p.heads, p.q_len, p.value_dim});
  const Tensor log_sum = keep ? Tensor({p.batch, p.heads, p.q_len}) : Tensor();
  Forward(problem, out, log_sum).run();
  if (!keep) return Var(out);
  return custom_op(out, {a, b, weight, v},
                   [problem, out, log_sum](const Tensor& grad, std::span<Tensor> grads) {
                     additive_backward(problem, out, log_sum, grad, grads);
                   });
}

Cost additive_cost(const AttentionShape& shape, int64_t units) {
  PrefixPlane plane(shape);
  plane.dim = units;
  const double d = static_cast<double>(shape.head_dim), a = static_cast<double>(units),
               size = sizeof(real);
  const double heads = static_cast<double>(plane.all_heads());
  const double queries = heads * static_cast<double>(shape.q_len),
               keys = heads * static_cast<double>(shape.kv_len);
  const double projections = 2 * d * a * (queries + keys);
  const auto workspace =
      workspace_bytes(plane.all_heads() * plane.tiles(), Layout(plane, padded_units(units)).total);
  return {
      .flops = projections + (3 * a + 2 * d) * plane.pairs(kNarrowStrip),
      .backward_flops = 2 * projections + (11 * a + 4 * d) * plane.pairs(kAdditiveRows),
      .bytes = size * (queries + keys) * 2 * (d + a),
      .peak_bytes = size * (queries * d + (queries + keys) * a) + static_cast<double>(workspace),
      .state_bytes = size * (a + d) * keys};
}

}  // namespace attn
