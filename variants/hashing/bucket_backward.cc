// Backward of LSH attention: recomputes the weights from the log-sum-exp over all rounds, 10·d
// FLOPs a pair. One pass takes the queries of the keys' own chunk, another those of the next chunk,
// so that no two tasks write the same row.
#include <algorithm>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/softmax_rows.h"
#include "variants/hashing/gathered_chunks.h"

namespace attn {
namespace {

class BucketGradient {
 public:
  // log_sum [heads, len]: +infinity where a query sees itself alone, or nothing.
  BucketGradient(const BucketProblem& p, const Tensor& out, const real* log_sum, const Tensor& grad,
                 std::span<Tensor> grads)
      : p_(p),
        out_(out),
        log_sum_(log_sum),
        grad_(grad),
        grads_(grads),
        layout_(p.length(), p.dim(), p.sorted->rounds(), p.options.chunk, true) {
    const MemoryScope scope(Purpose::workspace);
    if (grads_[0].defined()) to_keys_ = Tensor::zeros(p.q.shape());
  }

  void run() const {
    const int64_t chunks = p_.max_chunks();
    for (int64_t round = 0; round < p_.sorted->rounds(); ++round)
      for (const bool own : {true, false})
        run_tasks(p_.heads() * chunks, layout_.total, [&](int64_t task, real* work) {
          if (task % chunks < p_.chunks(task / chunks))
            add(task / chunks, round, task % chunks, own, work);
        });
    over_range(p_.heads() * p_.length(), p_.dim(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) finish(row);
    });
  }

 private:
  void add(int64_t head, int64_t round, int64_t c, bool own, real* work) const {
    const int64_t d = p_.dim(), keys = own ? c : p_.before(head, c);
    if (keys < 0) return;
    const Span queries = p_.chunk(head, c), seen = p_.chunk(head, keys);
    GatheredChunks gathered(p_, layout_, head, round, work);
    gathered.append(seen);
    gathered.pack();
    pack_transposed(gathered.values(), gathered.count(), d, d, work + layout_.value_panels);
    const int64_t cols = gathered.count();
    real* const to_keys = work + layout_.to_keys;
    // The gathered values are packed, and their rows become their gradient.
    real* const to_values = gathered.values();
    std::fill_n(to_keys, cols * d, real(0));
    std::fill_n(to_values, cols * d, real(0));
    for (int64_t s = queries.begin; s < queries.end; s += kBucketWideStrip) {
      const int64_t rows = std::min(kBucketWideStrip, queries.end - s);
      gathered.fill_scores({s, s + rows}, own ? s - queries.begin : -kBucketWideStrip);
      fill_logit_gradients(gathered, s, rows, work);
      const real *const weights = gathered.scores(), *const grad_logits =
                                                         work + layout_.grad_logits;
      add_product(cols, d, rows, {weights, 1, layout_.stride}, {work + layout_.from, d}, to_values,
                  d);
      add_product(cols, d, rows, {grad_logits, 1, layout_.stride}, {work + layout_.raw, d}, to_keys,
                  d);
      product(rows, d, cols, {grad_logits, layout_.stride}, {gathered.keys(), d},
              work + layout_.out, d);
      scatter(gathered, {s, s + rows}, work + layout_.out, grads_[0]);
    }
    scatter(gathered, seen, to_keys, to_keys_);
    scatter(gathered, seen, to_values, grads_[2]);
    count_flops(10 * static_cast<double>((queries.end - queries.begin) * cols * d));
  }

  // Weights in the scores' place, and gradients of the logits, from what is gathered here.
  void fill_logit_gradients(const GatheredChunks& gathered, int64_t first, int64_t rows,
                            real* work) const {
    const int64_t d = p_.dim();
    real *const from = work + layout_.from, *const dots = work + layout_.dots;
    real* const sums = work + layout_.sums;
    gather_queries(gathered, first, rows, work);
    product(rows, gathered.padded(), d, {from, d}, packed(work + layout_.value_panels, d),
            work + layout_.grad_logits, layout_.stride);
    logit_grad_rows(rows, gathered.padded(), gathered.scores(), work + layout_.grad_logits,
                    layout_.stride, sums, dots, real(p_.options.scale));
  }

  void gather_queries(const GatheredChunks& gathered, int64_t first, int64_t rows,
                      real* work) const {
    const Mark mark(Part::gathering);
    const int64_t d = p_.dim();
    real* const from = work + layout_.from;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = gathered.position(first + r),
                    ahead = gathered.position_ahead(first + r, first + rows);
      for (const real* const all : {p_.q.data(), grad_.data(), out_.data()})
        fetch_row(all + ahead * d, d);
      std::copy_n(p_.q.data() + at * d, d, work + layout_.raw + r * d);
      std::copy_n(grad_.data() + at * d, d, from + r * d);
      work[layout_.dots + r] = row_dot(from + r * d, out_.data() + at * d, d);
      work[layout_.sums + r] = log_sum_[at];
    }
  }

  void scatter(const GatheredChunks& gathered, Span sorted, const real* rows,
               const Tensor& to) const {
    const int64_t d = p_.dim();
    if (!to.defined()) return;
    const Mark mark(Part::gathering);
    for (int64_t s = sorted.begin; s < sorted.end; ++s, rows += d) {
      fetch_row(to.data() + gathered.position_ahead(s, sorted.end) * d, d);
      real* const row = to.data() + gathered.position(s) * d;
      for (int64_t c = 0; c < d; ++c) row[c] += rows[c];
    }
  }

  // What keys got goes through their normalisation; who saw itself alone sends all to its value.
  void finish(int64_t row) const {
    const int64_t d = p_.dim();
    if (row % p_.length() >= p_.valid(row / p_.length())) return;
    const real* const from = grad_.data() + row * d;
    if (log_sum_[row] == kInfinity && grads_[2].defined())
      for (int64_t c = 0; c < d; ++c) grads_[2][row * d + c] += from[c];
    if (!grads_[0].defined()) return;
    const real *const query = p_.q.data() + row * d, *const key = to_keys_.data() + row * d;
    const real factor = p_.key_factor(query);
    const real along = p_.options.unit_keys ? factor * factor * row_dot(query, key, d) : real(0);
    for (int64_t c = 0; c < d; ++c) grads_[0][row * d + c] += factor * (key[c] - along * query[c]);
  }

  const BucketProblem& p_;
  const Tensor& out_;
  const real* const log_sum_;
  const Tensor& grad_;
  std::span<Tensor> grads_;
  const BucketLayout layout_;
  Tensor to_keys_;  // the gradient of the keys, as they were multiplied
};

}  // namespace

void bucket_backward(const BucketProblem& problem, const Tensor& out, const real* log_sum,
                     const Tensor& grad, std::span<Tensor> grads) {
  BucketGradient(problem, out, log_sum, grad, grads).run();
}

}  // namespace attn
