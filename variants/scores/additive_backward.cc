// Backward of additive attention, for one panel of keys and one strip of queries at a time.
// Recomputes the weights and the derivatives of tanh: 11·units + 4·d FLOPs and 1.25·units divisions
// a pair. Parallel over batch × heads. The gradients of the weight are summed over batch entries in
// order.
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/softmax_rows.h"
#include "variants/scores/additive_gradient.h"

namespace attn {
namespace {

constexpr int64_t kRows = kAdditiveRows;

struct BackwardLayout {  // offsets into a worker's workspace; transformed queries are at 0
  int64_t panel, values, weights, grad_logits, dots, keys, sums, total;

  BackwardLayout(int64_t padded, int64_t value_dim) {
    panel = padded_reals(kRows * padded);
    values = panel + kPanel * padded;
    weights = values + kPanel * value_dim;
    grad_logits = weights + kRows * kPanel;
    dots = grad_logits + kRows * kPanel;
    keys = dots + padded_reals(kRows);
    sums = keys + kPanel * padded;
    total = sums + 2 * padded;
  }
};

class Backward {
 public:
  Backward(const AdditiveProblem& problem, const Tensor& out, const Tensor& log_sum,
           const Tensor& grad_out, std::span<Tensor> grads)
      : x_(problem),
        p_(problem.plane),
        padded_(problem.padded()),
        layout_(padded_, p_.value_dim),
        out_(out),
        log_sum_(log_sum),
        grad_(grad_out),
        grads_(grads),
        of_units_(Tensor::zeros({p_.all_heads(), padded_})) {}

  void run() const {
    run_tasks(p_.all_heads(), layout_.total, [&](int64_t h, real* work) { add_head(h, work); });
    if (!grads_[2].defined()) return;
    for (int64_t h = 0; h < p_.all_heads(); ++h)
      for (int64_t c = 0; c < p_.dim; ++c)
        grads_[2][h % p_.heads * p_.dim + c] += of_units_[h * padded_ + c];
  }

 private:
  bool logit_grad_wanted() const {
    return grads_[0].defined() || grads_[1].defined() || grads_[2].defined();
  }

  void add_head(int64_t h, real* work) const {
    const int64_t units = p_.dim, dv = p_.value_dim;
    double pairs = 0;
    for (int64_t j = 0; j < p_.length(h); j += kPanel) {
      const int64_t count = std::min(kPanel, p_.length(h) - j);
      {
        const Mark mark(Part::scores);
        additive_panel(x_.key(h, j), count, units, x_.large, work + layout_.panel);
      }
      pack_transposed(x_.value(h, j), count, dv, dv, work + layout_.values);
      std::fill_n(work + layout_.keys, kPanel * padded_, real(0));
      for (int64_t i = 0; i < p_.q_len; i += kRows) {
        const int64_t rows = std::min(kRows, p_.q_len - i);
        const int64_t cols = std::min(count, p_.seen(h, i + rows - 1) - j);
        if (cols <= 0) continue;
        make_logit_gradients(h, i, rows, j, cols, work);
        if (logit_grad_wanted()) add_gradients(h, i, rows, work);
        pairs += static_cast<double>(rows * cols);
      }
      if (grads_[1].defined()) add_keys(h, j, count, work + layout_.keys);
    }
    const auto products = (logit_grad_wanted() ? 2 * dv : 0) + (grads_[3].defined() ? 2 * dv : 0);
    count_flops(pairs * static_cast<double>((logit_grad_wanted() ? 11 : 3) * units + products));
  }

  // Weights P and gradients P·(dO·Vᵀ - dO·O) of the logits, both 0 where masked. Also adds to dv.
  void make_logit_gradients(int64_t h, int64_t i, int64_t rows, int64_t first, int64_t cols,
                            real* work) const {
    const int64_t dv = p_.value_dim, row = h * p_.q_len + i;
    real *const weights = work + layout_.weights, *const grad_logits = work + layout_.grad_logits,
                *const dots = work + layout_.dots;
    const real* const grad = grad_.data() + row * dv;
    {
      const Mark mark(Part::scores);
      for (int64_t r = 0; r < rows; ++r) {
        additive_row(x_.query(h, i + r), p_.dim, x_.large, work + r * padded_);
        x_.scores(h, work + r * padded_, work + layout_.panel, weights + r * kPanel);
        dots[r] = row_dot(grad + r * dv, out_.data() + (row + r) * dv, dv);
      }
    }
    p_.mask_beyond_prefix(h, i, rows, first, kPanel, weights, kPanel, -kInfinity);
    product(rows, kPanel, dv, {grad, dv}, packed(work + layout_.values, dv), grad_logits, kPanel);
    logit_grad_rows(rows, kPanel, weights, grad_logits, kPanel, log_sum_.data() + row, dots, 1);
    p_.mask_beyond_prefix(h, i, rows, first, kPanel, grad_logits, kPanel, 0);
    if (grads_[3].defined())
      add_product(cols, dv, rows, {weights, 1, kPanel}, {grad, dv},
                  grads_[3].data() + (h * p_.kv_len + first) * dv, dv);
  }

  void add_gradients(int64_t h, int64_t i, int64_t rows, real* work) const {
    const Mark mark(Part::scores);
    for (int64_t r = 0; r < rows; ++r) add_row(h, i + r, r, work);
  }

  // With r as in additive_scores.h, for each unit: Σ_j grad_logits_j·r(1 - r) to the query, its
  // terms to the keys, and Σ_j grad_logits_j·r to the weight. The gradients of a row of logits sum
  // to 0.
  void add_row(int64_t h, int64_t i, int64_t r, real* work) const {
    real *const grad_query = work + layout_.sums, *const grad_unit = grad_query + padded_;
    additive_grad({x_.large, padded_, work + r * padded_, work + layout_.panel},
                  work + layout_.grad_logits + r * kPanel, work + layout_.keys, grad_query,
                  grad_unit);
    const real* const w = x_.w.data() + h % p_.heads * p_.dim;
    if (grads_[0].defined()) {
      real* const to = grads_[0].data() + (h * p_.q_len + i) * p_.dim;
      for (int64_t c = 0; c < p_.dim; ++c) to[c] += 4 * w[c] * grad_query[c];
    }
    for (int64_t c = 0; c < p_.dim; ++c) of_units_[h * padded_ + c] -= 2 * grad_unit[c];
  }

  void add_keys(int64_t h, int64_t first, int64_t count, const real* sums) const {
    const Mark mark(Part::scores);
    const real* const w = x_.w.data() + h % p_.heads * p_.dim;
    real* const to = grads_[1].data() + (h * p_.kv_len + first) * p_.dim;
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < p_.dim; ++c) to[j * p_.dim + c] += 4 * w[c] * sums[c * kPanel + j];
  }

  const AdditiveProblem& x_;
  const PrefixPlane& p_;
  int64_t padded_;
  BackwardLayout layout_;
  const Tensor &out_, &log_sum_, &grad_;
  std::span<Tensor> grads_;
  Tensor of_units_;  // [all heads, padded units]
};

}  // namespace

void additive_backward(const AdditiveProblem& problem, const Tensor& out, const Tensor& log_sum,
                       const Tensor& grad_out, std::span<Tensor> grads) {
  Backward(problem, out, log_sum, grad_out, grads).run();
}

}  // namespace attn
