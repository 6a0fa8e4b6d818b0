// Backward of path_attention(). A task is a head. The queries of a chunk pass the maps once more
// and are kept before each; then gradients go from the first chunk of keys back to the queries'
// own.
#include <algorithm>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "variants/chunked/path_attention.h"
#include "variants/chunked/path_problem.h"

namespace attn {
namespace {

// Of one worker.
struct PathBackwardLayout {
  explicit PathBackwardLayout(const PathProblem& p)
      : weights(padded_reals(p.head_reals())),
        grads(weights + padded_reals(p.chunk * p.chunk)),
        panels(grads + padded_reals(p.chunk * p.chunk)),
        gradient(panels + padded_reals(packed_reals(std::max(p.chunk, p.dim), p.dim))),
        next(gradient + padded_reals(p.rows_reals())),
        dots(next + padded_reals(p.rows_reals())),
        total(dots + padded_reals(p.chunk)) {}
  // The queries before each chunk of keys stand first.
  int64_t weights, grads, panels, gradient, next, dots, total;
};

class Head {
 public:
  Head(const PathProblem& p, const PathSaved& s, const Tensor& grad_out, std::span<Tensor> grads,
       int64_t head, real* work)
      : p_(p), s_(s), grads_(grads), grad_out_(grad_out), at_(p), head_(head), work_(work) {}

  void run() {
    for (int64_t a = 0; a < p_.chunks; ++a) {
      trace_queries(a);
      const real* const out = rows(s_.out, a);
      const real* const grad = rows(grad_out_, a);
      real* const dots = work_ + at_.dots;
      for (int64_t i = 0; i < p_.chunk; ++i) {
        dots[i] = 0;
        for (int64_t c = 0; c < p_.dim; ++c) dots[i] += out[i * p_.dim + c] * grad[i * p_.dim + c];
      }
      near(a);
      for (int64_t b = 0; b < a; ++b) pair(a, b);
      if (a > 0 && grads_[0].defined()) {
        const real* const from = work_ + at_.gradient;
        real* const to = rows(grads_[0], a);
        for (int64_t i = 0; i < p_.rows_reals(); ++i) to[i] += from[i];
      }
    }
  }

 private:
  real* rows(const Tensor& t, int64_t b) const {
    return t.data() + (head_ * p_.chunks + b) * p_.rows_reals();
  }
  real* map(const Tensor& t, int64_t b) const {
    return t.data() + (head_ * p_.chunks + b) * p_.dim * p_.dim;
  }
  real* queries(int64_t b) const { return work_ + b * p_.rows_reals(); }

  // The queries of chunk a as they meet each earlier chunk b, in natural units.
  void trace_queries(int64_t a) {
    if (a == 0) return;
    std::copy_n(rows(s_.q, a), p_.rows_reals(), queries(a - 1));
    for (int64_t b = a - 1; b > 0; --b)
      product(p_.chunk, p_.dim, p_.dim, {queries(b), p_.dim}, {map(s_.maps, b), p_.dim},
              queries(b - 1), p_.dim);
    done_.multiply_adds((a - 1) * p_.chunk * p_.dim * p_.dim);
  }

  // Logits in `weights` become weights, `grads` the gradients of the logits; those of the values of
  // chunk b are added.
  void weigh(int64_t a, int64_t b) {
    const int64_t c = p_.chunk, dim = p_.dim;
    real *const weights = work_ + at_.weights, *const grads = work_ + at_.grads,
                *const panels = work_ + at_.panels;
    const real* const grad_out = rows(grad_out_, a);
    const int64_t keys = p_.keys(head_, b);
    for (int64_t i = 0; i < c * c; ++i) weights[i] *= kLog2E;
    hide_keys(c, keys, a == b, weights);
    std::fill_n(grads, c * c, real(0));
    if (keys > 0) {
      pack_transposed(rows(s_.v, b), keys, dim, dim, panels);
      product(c, keys, dim, {grad_out, dim}, packed(panels, dim), grads, c);
      done_.multiply_adds(c * keys * dim);
    }
    logit_grad_rows(c, c, weights, grads, c, s_.log_sum.data() + (head_ * p_.chunks + a) * c,
                    work_ + at_.dots, 1);
    if (!grads_[2].defined()) return;
    add_product(keys, dim, c, {weights, 1, c}, {grad_out, dim}, rows(grads_[2], b), dim);
    done_.multiply_adds(keys * dim * c);
  }

  void near(int64_t a) {
    const int64_t size = p_.chunk * p_.chunk, at = (head_ * p_.chunks + a) * size;
    std::copy_n(s_.near.data() + at, size, work_ + at_.weights);
    weigh(a, a);
    if (!grads_[4].defined()) return;
    real* const to = grads_[4].data() + at;
    for (int64_t i = 0; i < size; ++i) to[i] += work_[at_.grads + i];
  }

  void pair(int64_t a, int64_t b) {
    const int64_t c = p_.chunk, dim = p_.dim;
    real *const grads = work_ + at_.grads, *const panels = work_ + at_.panels;
    real *const gradient = work_ + at_.gradient, *const next = work_ + at_.next;
    pack_transposed(rows(s_.k, b), c, dim, dim, panels);
    product(c, c, dim, {queries(b), dim}, packed(panels, dim), work_ + at_.weights, c);
    weigh(a, b);
    const bool of_keys = grads_[1].defined(), of_map = b > 0 && grads_[3].defined();
    done_.multiply_adds((of_keys ? 3 : 2) * c * c * dim);
    if (b > 0) done_.multiply_adds((of_map ? 2 : 1) * c * dim * dim);
    if (of_keys) add_product(c, dim, c, {grads, 1, c}, {queries(b), dim}, rows(grads_[1], b), dim);
    if (b == 0) {
      product(c, dim, c, {grads, c}, {rows(s_.k, b), dim}, gradient, dim);
      return;
    }
    // `gradient` is that of the queries after this chunk's map.
    if (of_map)
      add_product(dim, dim, c, {queries(b), 1, dim}, {gradient, dim}, map(grads_[3], b), dim);
    pack_transposed(map(s_.maps, b), dim, dim, dim, panels);
    product(c, dim, dim, {gradient, dim}, packed(panels, dim), next, dim);
    add_product(c, dim, c, {grads, c}, {rows(s_.k, b), dim}, next, dim);
    std::copy_n(next, p_.rows_reals(), gradient);
  }

  const PathProblem& p_;
  const PathSaved& s_;
  std::span<Tensor> grads_;
  const Tensor& grad_out_;
  PathBackwardLayout at_;
  int64_t head_;
  real* work_;
  Tally done_;
};

}  // namespace

double path_backward_flops(const PathProblem& p) {
  const auto pairs = static_cast<double>(p.chunks * (p.chunks - 1) / 2);
  const auto maps = static_cast<double>((p.chunks - 1) * (p.chunks - 2) / 2);
  return (10 * pairs * static_cast<double>(p.chunk) + 4 * static_cast<double>(p.len) +
          6 * maps * static_cast<double>(p.dim)) *
         static_cast<double>(p.chunk * p.dim);
}

void path_backward(const PathProblem& p, const PathSaved& s, const Tensor& grad_out,
                   std::span<Tensor> grads) {
  run_tasks(p.heads, PathBackwardLayout(p).total,
            [&](int64_t head, real* work) { Head(p, s, grad_out, grads, head, work).run(); });
}

}  // namespace attn
