// Backward of tiled softmax attention: weights recomputed from the log-sum-exp, 10·pairs·d FLOPs.
// A block of keys is packed once and multiplied with every tile of queries: the weights and the
// gradients of the logits are computed in the second-level cache, then added to dv, dk and dq. One
// task a head. Where heads are too few for the threads, the keys and the queries of a head are
// divided into `parts`; in each round, a task takes one part of each, so that no two tasks write
// the same rows: no atomics, no copies.
#include "variants/softmax/softmax_backward.h"

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/workers.h"
#include "core/simd/row_ops.h"
#include "core/simd/softmax_rows.h"
#include "variants/softmax/backward_layout.h"

namespace attn {
namespace {

class SoftmaxGradient {
 public:
  SoftmaxGradient(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v,
                  const Tensor& out, const Tensor& log_sum, const Tensor& grad_out,
                  std::span<Tensor> grads, const Tensor& grad_log_sum)
      : p_(problem),
        tiles_(p_.q_len, p_.pattern.get(), kBackwardTile, kBackwardStrip),
        parts_(parts_of_units(p_.batch * p_.heads)),
        block_(block_of(p_, parts_)),
        layout_(p_, tiles_, block_),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        log_sum_(log_sum),
        grad_out_(grad_out),
        grad_log_sum_(grad_log_sum),
        grad_q_(grads[0]),
        grad_k_(grads[1]),
        grad_v_(grads[2]),
        grad_bias_(problem.bias ? grads[3] : Tensor()) {}

  void run() {
    if (!grad_bias_.defined()) return add_all();
    const int64_t heads = p_.batch * p_.heads;
    const int64_t numbers = heads * parts_ * p_.bias->gradient_size();
    bias_sums_ = Block(static_cast<size_t>(numbers) * sizeof(double), Purpose::workspace);
    std::fill_n(static_cast<double*>(bias_sums_.data()), numbers, 0.0);
    add_all();
    p_.bias->reduce(static_cast<const double*>(bias_sums_.data()), heads, parts_, 1 / p_.scale,
                    grad_bias_);
  }

 private:
  void add_all() const {
    if (parts_ > 1 && has_few_keys(p_)) return run_few_keys();
    const int64_t heads = p_.batch * p_.heads;
    const bool turns = is_triangular(p_);
    for (int64_t round = 0; round < parts_; ++round)
      run_tasks(heads * parts_, layout_.total, [&](int64_t task, real* work) {
        const int64_t part = task % parts_;
        add_head(task / parts_, {part, parts_, turns}, {(part + round) % parts_, parts_, turns},
                 of_head(task / parts_), sums_of(task), work);
      });
  }

  // Where a task sums gradients of biases; null: not wanted.
  double* sums_of(int64_t task) const {
    if (!grad_bias_.defined()) return nullptr;
    return static_cast<double*>(bias_sums_.data()) + task * p_.bias->gradient_size();
  }

  // One block or tile of each group of `of`; of a triangle by turns from the group's front and from
  // its back, since work grows or falls from one to the next.
  struct Interleaved {
    int64_t first, of;
    bool turns;

    int64_t operator[](int64_t group) const {
      return group * of + (turns && group % 2 ? of - 1 - first : first);
    }
  };

  // Where the gradients of a head's keys and values are summed; null: not wanted.
  struct KeyGrads {
    real *k, *v;
  };

  KeyGrads of_head(int64_t head) const {
    return {grad_k_.defined() ? grad_k_.data() + head * p_.kv_len * p_.dim : nullptr,
            grad_v_.defined() ? grad_v_.data() + head * p_.kv_len * p_.value_dim : nullptr};
  }

  // The first part of a head adds to the gradients themselves, each other one to zeros of its own.
  void run_few_keys() const {
    const int64_t heads = p_.batch * p_.heads, others = parts_ - 1;
    const int64_t keys = grad_k_.defined() ? p_.kv_len * p_.dim : 0,
                  values = grad_v_.defined() ? p_.kv_len * p_.value_dim : 0;
    const Tensor apart = Tensor::zeros({heads * others, keys + values});
    const auto own = [&](int64_t head, int64_t part) {
      real* const at = apart.data() + (head * others + part - 1) * (keys + values);
      return KeyGrads{keys ? at : nullptr, values ? at + keys : nullptr};
    };
    run_tasks(heads * parts_, layout_.total, [&](int64_t task, real* work) {
      const int64_t head = task / parts_, part = task % parts_;
      add_head(head, {0, 1, false}, {part, parts_, is_triangular(p_)},
               part == 0 ? of_head(head) : own(head, part), sums_of(task), work);
    });
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t part = 1; part < parts_; ++part) {
        const KeyGrads to = of_head(head), from = own(head, part);
        for (int64_t i = 0; i < keys; ++i) to.k[i] += from.k[i];
        for (int64_t i = 0; i < values; ++i) to.v[i] += from.v[i];
      }
  }

  bool logit_grad_wanted() const {
    return grad_q_.defined() || grad_k_.defined() || grad_bias_.defined();
  }

  void add_head(int64_t head, Interleaved keys, Interleaved queries, KeyGrads grads,
                double* bias_sums, real* work) const {
    const Band band = p_.band(head / p_.heads);
    double pairs = 0;
    for (int64_t g = 0; g * keys.of * block_ < band.length; ++g) {
      const Span block{keys[g] * block_, std::min((keys[g] + 1) * block_, band.length)};
      bool is_packed = false;
      for (int64_t h = 0; h * queries.of < tiles_.count() && block.begin < block.end; ++h)
        visit_tiles(band, head, tiles_[queries[h]], block, [&](const ScoreTile& tile) {
          if (!is_packed) pack(head, block, work);
          is_packed = true;
          add_tile(band, head, block.begin, tile, grads, work);
          if (bias_sums)
            p_.bias->add_gradient(bias_tile(band, head, tile),
                                  work + layout_.grad_logits + (tile.keys.begin - block.begin),
                                  bias_sums);
          pairs += static_cast<double>((tile.queries.end - tile.queries.begin) *
                                       (tile.keys.end - tile.keys.begin));
        });
    }
    const double d = static_cast<double>(p_.dim), dv = static_cast<double>(p_.value_dim);
    count_flops(2 * pairs *
                (d + (logit_grad_wanted() ? dv : 0) + (grad_v_.defined() ? dv : 0) +
                 (grad_q_.defined() ? d : 0) + (grad_k_.defined() ? d : 0)));
  }

  // Calls visit(tile) for the scores of `queries` with the keys of `block`: one tile where every
  // query sees every key, also of a run of a pattern, else one for each strip of queries.
  template <class Visit>
  void visit_tiles(const Band& band, int64_t head, Span queries, Span block, Visit&& visit) const {
    bool meets = false, whole = p_.pattern != nullptr;
    visit_runs(band, head, queries, block, [&](Span keys) {
      meets = true;
      whole = whole && band.covers(queries, keys);
    });
    if (!meets) return;
    if (!p_.pattern && band.covers(queries, block)) return visit(ScoreTile{queries, block, true});
    const int64_t rows = whole ? queries.end - queries.begin : kBackwardStrip;
    for (int64_t i = queries.begin; i < queries.end; i += rows) {
      const Span strip{i, std::min(i + rows, queries.end)};
      visit_runs(band, head, strip, block, [&](Span keys) {
        visit(ScoreTile{strip, keys, whole});
      });
    }
  }

  // Calls visit(keys) for each run of keys of the block that some of the queries see.
  template <class Visit>
  void visit_runs(const Band& band, int64_t head, Span queries, Span block, Visit&& visit) const {
    visit_spans(band, p_.pattern.get(), head, queries, [&](Span run) {
      const Span keys{std::max(run.begin, block.begin), std::min(run.end, block.end)};
      if (keys.begin < keys.end) visit(keys);
    });
  }

  LogitBias::Tile bias_tile(const Band& band, int64_t head, const ScoreTile& tile) const {
    return {head, band.position(tile.queries.begin), tile.queries.end - tile.queries.begin,
            tile.keys, layout_.stride};
  }

  void pack(int64_t head, Span block, real* work) const {
    const int64_t at = head * p_.kv_len + block.begin, count = block.end - block.begin;
    pack_transposed(k_.data() + at * p_.dim, count, p_.dim, p_.dim, work + layout_.keys);
    if (logit_grad_wanted())
      pack_transposed(v_.data() + at * p_.value_dim, count, p_.value_dim, p_.value_dim,
                      work + layout_.values);
  }

  void add_tile(const Band& band, int64_t head, int64_t first, const ScoreTile& tile,
                KeyGrads grads, real* work) const {
    const int64_t d = p_.dim, dv = p_.value_dim, stride = layout_.stride;
    const int64_t rows = tile.queries.end - tile.queries.begin;
    const int64_t cols = tile.keys.end - tile.keys.begin, skip = tile.keys.begin - first;
    const int64_t row = head * p_.q_len + tile.queries.begin;
    const int64_t key = head * p_.kv_len + tile.keys.begin;
    make_weights(band, head, first, tile, work);
    const real* const weights = work + layout_.weights + skip;
    const real* const grad_logits = work + layout_.grad_logits + skip;
    if (grads.v)
      add_mixed_product(cols, dv, rows, {weights, 1, stride}, {grad_out_.data() + row * dv, dv},
                        grads.v + tile.keys.begin * dv, dv);
    if (grads.k)
      add_mixed_product(cols, d, rows, {grad_logits, 1, stride}, {q_.data() + row * d, d},
                        grads.k + tile.keys.begin * d, d);
    if (grad_q_.defined())
      add_mixed_product(rows, d, cols, {grad_logits, stride, 1}, {k_.data() + key * d, d},
                        grad_q_.data() + row * d, d);
  }

  // Weights P = exp(scale·QKᵀ - L) and gradients scale·P·(dO·Vᵀ - dots), dots = dO·O - dL; column c
  // is key `first + c`. Columns outside the tile are left with anything.
  void make_weights(const Band& band, int64_t head, int64_t first, const ScoreTile& tile,
                    real* work) const {
    const int64_t d = p_.dim, dv = p_.value_dim, stride = layout_.stride;
    const int64_t rows = tile.queries.end - tile.queries.begin;
    const int64_t row = head * p_.q_len + tile.queries.begin;
    const int64_t from = round_down(tile.keys.begin - first, kRowMultiple);
    const int64_t to = round_up(tile.keys.end - first, kRowMultiple);
    real* const weights = work + layout_.weights;
    real* const grad_logits = work + layout_.grad_logits;
    real* const dots = work + layout_.dots;
    const real* const grad = grad_out_.data() + row * dv;
    {
      const Mark mark(Part::elementwise);
      scale_rows_to(q_.data() + row * d, rows * d, query_factor(p_), work + layout_.query);
    }
    packed_columns(rows, {from, to}, d, {work + layout_.query, d, 1}, work + layout_.keys, weights,
                   stride);
    if (p_.bias) p_.bias->add(bias_tile(band, head, tile), weights + (tile.keys.begin - first));
    if (!tile.whole) mask_tile(band, tile, first, weights, -kInfinity);
    if (!logit_grad_wanted())
      return weight_rows(rows, to - from, weights + from, stride, log_sum_.data() + row);
    packed_columns(rows, {from, to}, dv, {grad, dv, 1}, work + layout_.values, grad_logits, stride);
    {
      const Mark mark(Part::softmax);
      dots_of_rows(rows, dv, grad, dv, out_.data() + row * dv, dv, dots);
      for (int64_t r = 0; grad_log_sum_.defined() && r < rows; ++r)
        dots[r] -= grad_log_sum_[row + r];
    }
    logit_grad_rows(rows, to - from, weights + from, grad_logits + from, stride,
                    log_sum_.data() + row, dots, real(p_.scale));
    if (!tile.whole) mask_tile(band, tile, first, grad_logits, 0);  // masked entries may be NaN
  }

  void mask_tile(const Band& band, const ScoreTile& tile, int64_t first, real* x,
                 real value) const {
    mask_outside_band(band, tile.queries.begin, tile.queries.end - tile.queries.begin, tile.keys,
                      first, tile.keys.begin - first, tile.keys.end - first, x, layout_.stride,
                      value);
  }

  const SoftmaxProblem& p_;
  QueryTiles tiles_;
  int64_t parts_, block_;
  BackwardLayout layout_;
  const Tensor &q_, &k_, &v_, &out_, &log_sum_, &grad_out_, &grad_log_sum_;
  const Tensor &grad_q_, &grad_k_, &grad_v_;
  const Tensor grad_bias_;
  Block bias_sums_;  // [tasks, gradient_size()] numbers of double
};

}  // namespace

double softmax_backward_pairs(const Band& band, const BlockPattern* pattern, int64_t head) {
  return executed_pairs(band, pattern, head,
                        QueryTiles(band.q_len, pattern, kBackwardTile, kBackwardStrip),
                        kBackwardStrip);
}

void softmax_backward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                      const Tensor& v, const Tensor& out, const Tensor& log_sum,
                      const Tensor& grad_out, std::span<Tensor> grads, const Tensor& grad_log_sum) {
  SoftmaxGradient(problem, q, k, v, out, log_sum, grad_out, grads, grad_log_sum).run();
}

}  // namespace attn
