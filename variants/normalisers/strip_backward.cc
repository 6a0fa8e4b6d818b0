// The backward pass of attention in strips: the weights are made again, 10·d FLOPs a visible pair.
// One task a unit of heads; where units are too few for the threads, parts of its strips, of which
// each sums the gradients of keys and values apart.
#include <span>
#include <vector>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "variants/normalisers/strip_problem.h"

namespace attn {
namespace {

class Backward : StripPass {
 public:
  Backward(const StripProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v,
           const Tensor& grad_out, std::span<Tensor> grads)
      : StripPass(problem, true, q, k, v),
        k_(k),
        grad_out_(grad_out),
        grads_(grads),
        values_(problem, v, 1),
        parts_(std::min(parts_of_units(p_.units()), std::max<int64_t>(1, layout_.strips))) {}

  void run() {
    const int64_t tasks = p_.units() * parts_;
    sums_.assign(static_cast<size_t>(tasks * p_.rule->sums), 0.0);
    const int64_t keys = key_reals(p_.dim, 1), values = key_reals(p_.value_dim, 2);
    apart_ = Tensor::zeros({p_.units() * (parts_ - 1), keys + values});
    run_tasks(tasks, layout_.total, [&](int64_t task, real* work) { add_part(task, work); });
    for (int64_t unit = 0; unit < p_.units(); ++unit)
      for (int64_t part = 1; part < parts_; ++part) {
        const KeyGrads to = key_grads(unit, 0), from = key_grads(unit, part);
        for (int64_t i = 0; i < keys; ++i) to.k[i] += from.k[i];
        for (int64_t i = 0; i < values; ++i) to.v[i] += from.v[i];
      }
    if (p_.rule->sums == 0 || !grads_[3].defined()) return;
    for (int64_t task = 0; task < tasks; ++task)
      for (int64_t i = 0; i < p_.rule->sums; ++i)
        grads_[3][i] += static_cast<real>(sums_[static_cast<size_t>(task * p_.rule->sums + i)]);
  }

 private:
  // Where a task sums the gradients of the keys and values of a unit; null: not wanted.
  struct KeyGrads {
    real *k, *v;
  };
  int64_t key_reals(int64_t dim, size_t which) const {
    return grads_[which].defined() ? p_.rule->group * p_.kv_len * dim : 0;
  }
  KeyGrads key_grads(int64_t unit, int64_t part) const {
    const int64_t keys = key_reals(p_.dim, 1), values = key_reals(p_.value_dim, 2);
    if (part == 0)
      return {keys ? grads_[1].data() + unit * keys : nullptr,
              values ? grads_[2].data() + unit * values : nullptr};
    real* const at = apart_.data() + (unit * (parts_ - 1) + part - 1) * (keys + values);
    return {keys ? at : nullptr, values ? at + keys : nullptr};
  }
  bool logit_grad_wanted() const {
    return grads_[0].defined() || grads_[1].defined() || p_.rule->sums > 0;
  }

  void add_part(int64_t task, real* work) {
    const int64_t unit = task / parts_;
    double* const learned = sums_.data() + task * p_.rule->sums;
    double pairs = 0;
    for (int64_t s = task % parts_; s < layout_.strips; s += parts_) {
      const int64_t begin = s * layout_.rows, end = std::min(begin + layout_.rows, p_.q_len);
      const StripAt at{unit, begin, end, p_.seen(p_.first_head(unit), end - 1), work};
      add_strip(at, key_grads(unit, task % parts_), learned);
      pairs += static_cast<double>(at.rows() * at.last);
    }
    const auto d = static_cast<double>(p_.dim), dv = static_cast<double>(p_.value_dim);
    const bool logits = logit_grad_wanted();
    const double products = d + (logits ? dv : 0) + (grads_[2].defined() ? dv : 0) +
                            (grads_[0].defined() ? d : 0) + (grads_[1].defined() ? d : 0);
    count_flops(pairs * (2 * static_cast<double>(p_.rule->group) * products +
                         (logits ? p_.rule->backward_flops : p_.rule->flops)));
  }

  void add_strip(const StripAt& at, const KeyGrads& to, double* learned) const {
    take_queries(at);
    if (grads_[0].defined())
      std::fill_n(at.work + layout_.grad_query, p_.maps() * at.rows() * p_.depth(), real(0));
    int64_t counts[StripProblem::kMostRows];
    for (int64_t first = 0; first < at.last; first += p_.span()) {
      const int64_t cols = std::min(p_.span(), at.last - first);
      count_keys(at, first, cols, counts);
      const RowStrip x = strip(at, layout_.logits, p_.maps(), counts);
      const RowStrip kept = strip(at, layout_.kept, p_.rule->kept, counts);
      const RowStrip g = strip(at, layout_.grads, p_.maps(), counts);
      make_logits(at, first, cols, x);
      add_value_grads(at, first, cols, kept_weights(x, kept, g), to);
      if (!logit_grad_wanted()) continue;
      make_weight_grads(at, first, cols, g);
      {
        const Mark mark(Part::softmax);
        p_.rule->gradient(x, kept, g, learned);
      }
      hide(g, cols, 1);
      add_logit_grads(at, first, cols, g, to);
    }
    if (grads_[0].defined()) add_query_grads(at);
  }

  RowStrip kept_weights(const RowStrip& x, const RowStrip& kept, const RowStrip& spare) const {
    const Mark mark(Part::softmax);
    return p_.rule->keep(x, kept, spare);
  }

  const real* grad_out(const StripAt& at, int64_t g) const {
    return grad_out_.data() + ((p_.first_head(at.unit) + g) * p_.q_len + at.begin) * p_.value_dim;
  }

  void add_value_grads(const StripAt& at, int64_t first, int64_t cols, const RowStrip& weights,
                       const KeyGrads& to) const {
    const int64_t dv = p_.value_dim, step = weights.maps / p_.rule->group;
    if (!to.v) return;
    hide(weights, cols, step);
    for (int64_t g = 0; g < p_.rule->group; ++g)
      visit_pieces(cols, [&](int64_t c, int64_t width) {
        add_product(width, dv, at.rows(), {weights.row(g * step, 0) + c, 1, weights.stride},
                    {grad_out(at, g), dv}, to.v + (g * p_.kv_len + first + c) * dv, dv);
      });
  }

  void make_weight_grads(const StripAt& at, int64_t first, int64_t cols, const RowStrip& g) const {
    const int64_t dv = p_.value_dim;
    for (int64_t h = 0; h < p_.rule->group; ++h)
      visit_pieces(cols, [&](int64_t c, int64_t width) {
        product(at.rows(), width, dv, {grad_out(at, h), dv},
                values_.from(p_.first_head(at.unit) + h, 0, first + c),
                g.row(h * p_.rule->parts, 0) + c, g.stride);
      });
  }

  void add_logit_grads(const StripAt& at, int64_t first, int64_t cols, const RowStrip& g,
                       const KeyGrads& to) const {
    const int64_t depth = p_.depth(), parts = p_.rule->parts, d = p_.dim;
    for (int64_t m = 0; m < p_.maps(); ++m)
      visit_pieces(cols, [&](int64_t c, int64_t width) {
        const int64_t in_unit = (m / parts * p_.kv_len + first + c) * d + m % parts * depth;
        if (to.k)
          add_product(width, depth, at.rows(), {g.row(m, 0) + c, 1, g.stride},
                      {queries(at, m), depth}, to.k + in_unit, d);
        if (grads_[0].defined())
          add_product(at.rows(), depth, width, {g.row(m, 0) + c, g.stride},
                      {k_.data() + p_.first_head(at.unit) * p_.kv_len * d + in_unit, d},
                      at.work + layout_.grad_query + m * at.rows() * depth, depth);
      });
  }

  void add_query_grads(const StripAt& at) const {
    const Mark mark(Part::elementwise);
    const int64_t depth = p_.depth(), parts = p_.rule->parts;
    const auto scale = static_cast<real>(p_.scale());
    const real* from = at.work + layout_.grad_query;
    for (int64_t m = 0; m < p_.maps(); ++m)
      for (int64_t i = at.begin; i < at.end; ++i, from += depth) {
        real* const to = grads_[0].data() +
                         ((p_.first_head(at.unit) + m / parts) * p_.q_len + i) * p_.dim +
                         m % parts * depth;
        for (int64_t c = 0; c < depth; ++c) to[c] += scale * from[c];
      }
  }

  const Tensor &k_, &grad_out_;
  std::span<Tensor> grads_;
  PackedRows values_;
  int64_t parts_;
  Tensor apart_;  // gradients of keys and values, of each part of a unit but the first
  std::vector<double, Recycled<double>> sums_;  // of learned numbers, of each task
};

}  // namespace

void strip_backward(const StripProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Tensor& grad_out, std::span<Tensor> grads) {
  Backward(problem, q, k, v, grad_out, grads).run();
}

}  // namespace attn
