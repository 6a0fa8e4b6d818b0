// The forward pass of attention in strips, and its cost; see strip_attention.h. Keys are packed
// once. Parallel over batch × heads × strips. Padding is never read.
#include "variants/normalisers/strip_attention.h"

#include <span>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "variants/normalisers/strip_problem.h"

namespace attn {
namespace {

StripProblem problem_of(const Shape& q, const Shape& k, const Shape& v, const Mask& mask,
                        const RowWeights& rule) {
  StripProblem p{.batch = q[0],
                 .heads = q[1],
                 .q_len = q[2],
                 .kv_len = k[2],
                 .dim = q[3],
                 .value_dim = v[3],
                 .causal = mask.causal,
                 .kv_lengths = mask.kv_lengths,
                 .rule = &rule};
  ATTN_CHECK(k == q.with(2, p.kv_len) && v == k.with(3, p.value_dim),
             "attention in strips: q {}, k {} and v {} do not fit", q.str(), k.str(), v.str());
  ATTN_CHECK(p.heads % rule.group == 0 && p.dim % rule.parts == 0,
             "{} heads are no multiple of {}, or {} channels none of {}", p.heads, rule.group,
             p.dim, rule.parts);
  return p;
}

class Forward : StripPass {
 public:
  Forward(const StripProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v,
          const Tensor& out)
      : StripPass(problem, false, q, k, v), out_(out) {}

  void run() const {
    run_tasks(p_.units() * layout_.strips, layout_.total, [&](int64_t task, real* work) {
      const int64_t unit = task / layout_.strips, begin = layout_.begin(task % layout_.strips);
      const int64_t end = std::min(begin + layout_.rows, p_.q_len);
      add_strip({unit, begin, end, p_.seen(p_.first_head(unit), end - 1), work});
    });
  }

 private:
  void add_strip(const StripAt& at) const {
    const int64_t dv = p_.value_dim, parts = p_.rule->parts;
    const auto out = [&](int64_t g) {
      return out_.data() + ((p_.first_head(at.unit) + g) * p_.q_len + at.begin) * dv;
    };
    for (int64_t g = 0; g < p_.rule->group; ++g) std::fill_n(out(g), at.rows() * dv, real(0));
    take_queries(at);
    int64_t counts[StripProblem::kMostRows];
    for (int64_t first = 0; first < at.last; first += p_.span()) {
      const int64_t cols = std::min(p_.span(), at.last - first);
      const RowStrip x = strip(at, layout_.logits, p_.maps(), counts);
      count_keys(at, first, cols, counts);
      make_logits(at, first, cols, x);
      {
        const Mark mark(Part::softmax);
        p_.rule->weigh(x);
      }
      hide(x, cols, parts);
      for (int64_t g = 0; g < p_.rule->group; ++g)
        visit_pieces(cols, [&](int64_t c, int64_t width) {
          add_product(at.rows(), dv, width, {x.row(g * parts, 0) + c, x.stride},
                      {value(p_.first_head(at.unit) + g, first + c), dv}, out(g), dv);
        });
    }
    count_flops(static_cast<double>(at.rows() * at.last) *
                (static_cast<double>(2 * p_.rule->group * (p_.dim + dv)) + p_.rule->flops));
  }

  const Tensor& out_;
};

}  // namespace

void StripPass::take_queries(const StripAt& at) const {
  const Mark mark(Part::elementwise);
  const int64_t depth = p_.depth();
  const auto scale = static_cast<real>(p_.scale());
  for (int64_t m = 0; m < p_.maps(); ++m) {
    const int64_t head = p_.first_head(at.unit) + m / p_.rule->parts, part = m % p_.rule->parts;
    real* to = at.work + layout_.query + m * at.rows() * depth;
    for (int64_t i = at.begin; i < at.end; ++i, to += depth) {
      const real* const from = q_.data() + (head * p_.q_len + i) * p_.dim + part * depth;
      for (int64_t c = 0; c < depth; ++c) to[c] = scale * from[c];
    }
  }
}

void StripPass::make_logits(const StripAt& at, int64_t first, int64_t cols,
                            const RowStrip& x) const {
  for (int64_t m = 0; m < p_.maps(); ++m)
    visit_pieces(cols, [&](int64_t c, int64_t width) {
      product(
          at.rows(), width, p_.depth(), {queries(at, m), p_.depth()},
          keys_.from(p_.first_head(at.unit) + m / p_.rule->parts, m % p_.rule->parts, first + c),
          x.row(m, 0) + c, x.stride);
    });
}

void StripPass::count_keys(const StripAt& at, int64_t first, int64_t cols, int64_t* counts) const {
  for (int64_t i = at.begin; i < at.end; ++i)
    counts[i - at.begin] = std::clamp<int64_t>(p_.seen(p_.first_head(at.unit), i) - first, 0, cols);
}

void StripPass::hide(const RowStrip& x, int64_t cols, int64_t step) {
  const Mark mark(Part::masks);
  for (int64_t m = 0; m < x.maps; m += step)
    for (int64_t r = 0; r < x.rows; ++r)
      std::fill(x.row(m, r) + x.counts[r], x.row(m, r) + cols, real(0));
}

int64_t PackedRows::reals(const StripProblem& p, int64_t dim, int64_t parts) {
  return p.batch * p.heads * parts * padded_reals(packed_reals(p.kv_len, dim / parts));
}

PackedRows::PackedRows(const StripProblem& p, const Tensor& x, int64_t parts)
    : parts_(parts),
      depth_(x.dim(3) / parts),
      each_(padded_reals(packed_reals(p.kv_len, depth_))),
      packed_({p.batch * p.heads * parts, each_}) {
  run_tasks(p.batch * p.heads * parts, 0, [&](int64_t task, real*) {
    const int64_t head = task / parts, dim = x.dim(3);
    pack_transposed(x.data() + head * p.kv_len * dim + task % parts * depth_, p.length(head),
                    depth_, dim, packed_.data() + task * each_);
  });
}

double strip_pairs(const StripProblem& p, int64_t rows) {
  double pairs = 0;
  const int64_t different = p.kv_lengths.empty() ? 1 : p.units();
  for (int64_t unit = 0; unit < different; ++unit)
    for (int64_t i = 0; i < p.q_len; i += rows) {
      const int64_t last = std::min(i + rows, p.q_len);
      pairs += static_cast<double>((last - i) * p.seen(p.first_head(unit), last - 1));
    }
  return pairs * static_cast<double>(p.units() / different);
}

Var strip_attention(const Var& q, const Var& k, const Var& v, const Mask& mask, const RowRule& rule,
                    const Var& learned) {
  const StripProblem problem = problem_of(q.shape(), k.shape(), v.shape(), mask, *rule);
  const Tensor qt = q.value(), kt = k.value(), vt = v.value(), out(q.shape().with(3, v.dim(3)));
  Forward(problem, qt, kt, vt, out).run();
  const auto backward = [problem, rule, qt, kt, vt](const Tensor& grad, std::span<Tensor> grads) {
    strip_backward(problem, qt, kt, vt, grad, grads);
  };
  return learned.defined() ? custom_op(out, {q, k, v, learned}, backward)
                           : custom_op(out, {q, k, v}, backward);
}

Cost strip_cost(const AttentionShape& s, const RowWeights& rule) {
  const StripProblem p{.batch = s.batch,
                       .heads = s.heads,
                       .q_len = s.q_len,
                       .kv_len = s.kv_len,
                       .dim = s.head_dim,
                       .value_dim = s.head_dim,
                       .causal = s.causal,
                       .rule = &rule};
  const StripLayout layout(p, false), backward(p, true);
  const auto d = static_cast<double>(s.head_dim), size = double{sizeof(real)};
  const auto rows = static_cast<double>(s.batch * s.heads * s.q_len) * d,
             keys = static_cast<double>(s.batch * s.heads * s.kv_len) * d;
  const auto packed = static_cast<double>(PackedRows::reals(p, p.dim, rule.parts));
  const double group = static_cast<double>(rule.group) * d;
  return {.flops = (4 * group + rule.flops) * strip_pairs(p, layout.rows),
          .backward_flops = (10 * group + rule.backward_flops) * strip_pairs(p, backward.rows),
          .bytes = size * (2 * rows + 3 * keys),
          .peak_bytes = size * (rows + packed) + static_cast<double>(workspace_bytes(
                                                     p.units() * layout.strips, layout.total)),
          .state_bytes = size * 2 * keys};
}

}  // namespace attn
