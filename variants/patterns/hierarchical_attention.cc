// One softmax over all levels; see hierarchical_attention.h. Each level gives outputs and
// log-sum-exps, which are joined; the backward of each level uses the joined ones. A mean of
// `count` positions counts so often by log(count) in its logit: one number for a whole level or,
// where some mean has fewer positions, a column beside the keys.
#include "variants/patterns/hierarchical_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
#include "variants/patterns/block_lists.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

int64_t cells(int64_t len, int64_t size) { return (len + size - 1) / size; }

// Means of `size` positions, those before `valid`, of all heads.
struct Means {
  int64_t size = 1, heads = 1, len = 0;  // heads: of one entry
  const IndexList* lengths = nullptr;    // of the entries; empty: all are `len`

  int64_t valid(int64_t row) const {  // row: of all heads
    return lengths->empty() ? len : (*lengths)[static_cast<size_t>(row / heads)];
  }
  int64_t count(int64_t row, int64_t cell) const {
    return std::clamp<int64_t>(valid(row) - cell * size, 0, size);
  }

  // x [batch, heads, len, dim] -> [batch, heads, cells, dim + 1 if `extra`]; extra(count) is the
  // last column.
  template <class Extra>
  Tensor of(const Tensor& x, bool wide, const Extra& extra) const {
    const Mark mark(Part::sums);
    const int64_t d = x.dim(3), to_d = d + (wide ? 1 : 0), all = cells(len, size);
    const Tensor result({x.dim(0), x.dim(1), all, to_d});
    over_range(x.dim(0) * x.dim(1) * all, size * d, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t row = at / all, cell = at % all, n = count(row, cell);
        real* const to = result.data() + at * to_d;
        std::fill_n(to, to_d, real(0));
        if (n == 0) continue;
        const real* from = x.data() + (row * len + cell * size) * d;
        for (int64_t i = 0; i < n; ++i, from += d)
          for (int64_t c = 0; c < d; ++c) to[c] += from[c];
        const real share = 1 / static_cast<real>(n);
        for (int64_t c = 0; c < d; ++c) to[c] *= share;
        if (wide) to[d] = extra(n);
      }
    });
    return result;
  }

  // Adds the gradients of means to those of their positions, [batch, heads, len, dim].
  void spread(const Tensor& means, const Tensor& to) const {
    const Mark mark(Part::sums);
    const int64_t d = to.dim(3), from_d = means.dim(3), all = cells(len, size);
    over_range(to.dim(0) * to.dim(1) * all, size * d, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t row = at / all, cell = at % all, n = count(row, cell);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t c = 0; c < d; ++c)
            to[(row * len + cell * size + i) * d + c] +=
                means[at * from_d + c] / static_cast<real>(n);
      }
    });
  }
};

struct Level {
  Means means;
  real shift = 0;          // of log-sum-exps, in units of log2
  Tensor q, k, v;          // q: of means, not causal
  Tensor out, log_sum;     // of means, not causal
  SoftmaxProblem problem;  // causal: of one pair of blocks
  Regroup queries, keys;   // causal: pairs of blocks of a head
  IndexList sizes;         // causal: [batch · heads · pairs]: keys of each
};

struct Hierarchy {
  Tensor q, k, v, out, log_sum;
  IndexList lengths;
  bool causal;
  bool wide = false;  // keys have a column for their counts
  SoftmaxProblem near;
  std::vector<Level, Recycled<Level>> levels;

  // Without tensors: the sizes alone.
  Hierarchy(const AttentionShape& s, int64_t block, bool causal_, const std::vector<int64_t>& given)
      : lengths(given.begin(), given.end()), causal(causal_) {
    const int64_t n = s.kv_len;
    near = {.batch = s.batch,
            .heads = s.heads,
            .q_len = n,
            .kv_len = n,
            .dim = s.head_dim,
            .value_dim = s.head_dim,
            .scale = 1 / std::sqrt(static_cast<double>(s.head_dim)),
            .causal = causal};
    near.kv_lengths = lengths;
    if (2 * block < n)
      near.pattern = block_lists(n, 2 * block, 1,
                                 [](int64_t, int64_t b, IndexList& list) { list.push_back(b); });
    for (int64_t size = 2; size * block < n; size *= 2) {
      levels.emplace_back();
      levels.back().means = {.size = size, .heads = s.heads, .len = n, .lengths = &lengths};
      // A causal query sees whole blocks alone; padding may cut them.
      if (!causal && n % size != 0) wide = true;
      for (const int64_t valid : lengths) wide |= valid % size != 0;
    }
    for (Level& level : levels) causal ? add_pairs(level, s, block) : add_blocks(level, block);
  }

  void finish(Level& level) const {
    level.problem.dim = near.dim + (wide ? 1 : 0);
    level.shift = wide ? real(0) : std::log2(static_cast<real>(level.means.size));
  }

  void add_blocks(Level& level, int64_t block) const {
    const int64_t m = cells(near.kv_len, level.means.size);
    level.problem = near;
    level.problem.q_len = level.problem.kv_len = m;
    for (int64_t& length : level.problem.kv_lengths) length = cells(length, level.means.size);
    level.problem.pattern = block_lists(m, block, 1, [&](int64_t, int64_t b, IndexList& list) {
      if ((b ^ 1) * block < m) list.push_back(b ^ 1);
    });
    finish(level);
  }

  void add_pairs(Level& level, const AttentionShape& s, int64_t block) const {
    const int64_t n = s.kv_len, size = level.means.size, each = block * size;
    level.queries = {.len = n, .groups = 0, .rows = std::min(each, n - each), .from = {}};
    level.keys = {.len = cells(n, size), .groups = 0, .rows = block, .from = {}};
    for (int64_t start = 0; start + each < n; start += 2 * each) {
      for (int64_t a = 0; a < level.queries.rows; ++a)
        level.queries.from.push_back(start + each + a < n ? start + each + a : -1);
      for (int64_t a = 0; a < block; ++a) level.keys.from.push_back(start / size + a);
      ++level.queries.groups, ++level.keys.groups;
    }
    for (int64_t row = 0; row < s.batch * s.heads; ++row)
      for (int64_t g = 0; g < level.keys.groups; ++g)
        level.sizes.push_back(
            std::clamp<int64_t>(cells(level.means.valid(row), size) - 2 * g * block, 0, block));
    level.problem = near;
    level.problem.causal = false;
    level.problem.pattern = nullptr;
    level.problem.kv_lengths.clear();
    level.problem.heads = 1;
    level.problem.q_len = level.queries.rows;
    level.problem.kv_len = block;
    finish(level);
  }

  Tensor key_means(const Level& level) const {
    return level.means.of(k, wide, [&](int64_t count) {
      return static_cast<real>(std::log(static_cast<double>(count)) / near.scale);
    });
  }
  Tensor wide_queries(const Means& means) const {
    return means.of(q, wide, [](int64_t) { return real(1); });
  }

  void forward() {
    softmax_forward(near, q, k, v, out, log_sum);
    IndexList all;
    const Tensor queries =
        causal && wide
            ? wide_queries({.size = 1, .heads = near.heads, .len = near.q_len, .lengths = &all})
            : q;
    for (Level& level : levels) {
      level.k = key_means(level);
      level.v = level.means.of(v, false, [](int64_t) { return real(0); });
      if (causal)
        add_to_later(level, queries);
      else
        add_means(level);
    }
    if (causal || lengths.empty()) return;
    const int64_t n = near.q_len, d = near.dim;
    for (int64_t row = 0; row < log_sum.size(); ++row) {
      if (row % n < lengths[static_cast<size_t>(row / n / near.heads)]) continue;
      std::fill_n(out.data() + row * d, d, real(0));
      log_sum[row] = kInfinity;
    }
  }

  void add_means(Level& level) const {
    level.q = wide_queries(level.means);
    level.out = Tensor(level.v.shape());
    level.log_sum = Tensor({q.dim(0), q.dim(1), level.v.dim(2)});
    softmax_forward(level.problem, level.q, level.k, level.v, level.out, level.log_sum);
    const Mark mark(Part::softmax);
    const int64_t n = near.q_len, d = near.dim, m = level.v.dim(2);
    over_range(log_sum.size(), 3 * d, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t cell = row / n * m + row % n / level.means.size;
        const real theirs = level.log_sum[cell];
        const Join joint(log_sum[row], theirs == kInfinity ? theirs : theirs + level.shift);
        for (int64_t c = 0; c < d; ++c)
          out[row * d + c] = joint.near * out[row * d + c] + joint.far * level.out[cell * d + c];
        log_sum[row] = joint.log_sum;
      }
    });
  }

  SoftmaxProblem part(const Level& level, Span which) const {
    SoftmaxProblem p = level.problem;
    p.batch = which.end - which.begin;
    p.kv_lengths.assign(level.sizes.begin() + which.begin, level.sizes.begin() + which.end);
    return p;
  }
  Span pairs(const Level& level) const { return {0, static_cast<int64_t>(level.sizes.size())}; }
  int64_t chunk(const Level& level, int64_t arrays) const {
    return level.queries.chunk(arrays, near.dim);
  }

  void add_to_later(const Level& level, const Tensor& queries) const {
    const MemoryScope scope(Purpose::workspace);
    in_chunks(pairs(level), chunk(level, kForwardArrays), [&](Span which) {
      const Tensor gq = level.queries.gather(queries, which),
                   more(gq.shape().with(3, near.value_dim)), sum({gq.dim(0), 1, gq.dim(2)});
      softmax_forward(part(level, which), gq, level.keys.gather(level.k, which),
                      level.keys.gather(level.v, which), more, sum);
      join_rows(level.queries, which, more, sum, level.shift, out, log_sum);
    });
  }

  void backward(const Tensor& grad, std::span<Tensor> grads) const {
    softmax_backward(near, q, k, v, out, log_sum, grad, grads);
    const MemoryScope scope(Purpose::workspace);
    for (const Level& level : levels) {
      std::array<Tensor, 3> own;
      if (grads[1].defined()) own[1] = Tensor::zeros(level.k.shape());
      if (grads[2].defined()) own[2] = Tensor::zeros(level.v.shape());
      if (causal)
        backward_of_later(level, grad, grads, own);
      else
        backward_of_means(level, grad, grads, own);
      if (grads[1].defined()) level.means.spread(own[1], grads[1]);
      if (grads[2].defined()) level.means.spread(own[2], grads[2]);
    }
  }

  // A mean query stands for several rows, each with a share of its weights.
  void backward_of_means(const Level& level, const Tensor& grad, std::span<Tensor> grads,
                         std::array<Tensor, 3>& own) const {
    const int64_t n = near.q_len, d = near.dim, m = level.v.dim(2);
    const Tensor of_out = Tensor::zeros(level.out.shape()),
                 of_sum = Tensor::zeros(level.log_sum.shape());
    {
      const Mark mark(Part::softmax);
      over_range(level.log_sum.size(), level.means.size * d, [&](int64_t begin, int64_t end) {
        for (int64_t cell = begin; cell < end; ++cell) {
          const int64_t head = cell / m, first = cell % m * level.means.size;
          real dots = 0;
          for (int64_t i = first; i < std::min(first + level.means.size, n); ++i) {
            const int64_t row = head * n + i;
            if (log_sum[row] == kInfinity || level.log_sum[cell] == kInfinity) continue;
            const real share = std::exp2(level.log_sum[cell] + level.shift - log_sum[row]);
            dots += share * row_dot(grad.data() + row * d, out.data() + row * d, d);
            for (int64_t c = 0; c < d; ++c) of_out[cell * d + c] += share * grad[row * d + c];
          }
          of_sum[cell] = row_dot(of_out.data() + cell * d, level.out.data() + cell * d, d) - dots;
        }
      });
    }
    if (grads[0].defined()) own[0] = Tensor::zeros(level.q.shape());
    softmax_backward(level.problem, level.q, level.k, level.v, level.out, level.log_sum, of_out,
                     own, of_sum);
    if (grads[0].defined()) level.means.spread(own[0], grads[0]);
  }

  void backward_of_later(const Level& level, const Tensor& grad, std::span<Tensor> grads,
                         const std::array<Tensor, 3>& own) const {
    const IndexList all;
    const Means single{.size = 1, .heads = near.heads, .len = near.q_len, .lengths = &all};
    const Tensor queries = wide ? wide_queries(single) : q,
                 of_queries = grads[0].defined() ? Tensor::zeros(queries.shape()) : Tensor();
    in_chunks(pairs(level), chunk(level, kBackwardArrays), [&](Span which) {
      const Tensor gq = level.queries.gather(queries, which),
                   gk = level.keys.gather(level.k, which), gv = level.keys.gather(level.v, which),
                   sum = level.queries.gather(log_sum, which, kInfinity);
      for (real& x : sum.values()) x -= level.shift;
      std::array<Tensor, 3> parts;
      if (of_queries.defined()) parts[0] = Tensor::zeros(gq.shape());
      if (own[1].defined()) parts[1] = Tensor::zeros(gk.shape());
      if (own[2].defined()) parts[2] = Tensor::zeros(gv.shape());
      softmax_backward(part(level, which), gq, gk, gv, level.queries.gather(out, which), sum,
                       level.queries.gather(grad, which), parts);
      if (of_queries.defined()) level.queries.scatter_add(parts[0], which, of_queries);
      if (own[1].defined()) level.keys.scatter_add(parts[1], which, own[1]);
      if (own[2].defined()) level.keys.scatter_add(parts[2], which, own[2]);
    });
    if (of_queries.defined()) single.spread(of_queries, grads[0]);
  }
};

}  // namespace

Var hierarchical_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                           const Mask& mask) {
  const AttentionShape shape{q.dim(0), q.dim(1), q.dim(2), q.dim(2), q.dim(3)};
  const auto h = std::allocate_shared<Hierarchy>(Recycled<Hierarchy>(), shape, block, mask.causal,
                                                 mask.kv_lengths);
  h->q = q.value(), h->k = k.value(), h->v = v.value();
  h->out = Tensor(q.shape());
  h->log_sum = Tensor({q.dim(0), q.dim(1), q.dim(2)});
  h->forward();
  return custom_op(h->out, {q, k, v},
                   [h](const Tensor& grad, std::span<Tensor> grads) { h->backward(grad, grads); });
}

Cost hierarchical_cost(const AttentionShape& s, int64_t block) {
  const Hierarchy h(s, block, s.causal, {});
  const auto of = [](int64_t x) { return static_cast<double>(x); };
  const double size = sizeof(real), d = of(s.head_dim), heads = of(s.batch * s.heads),
               rows = heads * of(s.kv_len), wide = h.wide ? 1 : 0;
  const SoftmaxWork near = softmax_work(h.near);
  double flops = near.flops, backward = near.backward_flops, kept = 0, room = near.workspace_bytes,
         bytes = 4 * rows * d;
  for (const Level& level : h.levels) {
    const double means = heads * of(cells(s.kv_len, level.means.size));
    kept += size * means * (s.causal ? 2 * d + wide : 4 * d + 2 * wide + 1);
    bytes += 4 * means * d;
    const SoftmaxWork work = softmax_work(s.causal ? h.part(level, h.pairs(level)) : level.problem);
    flops += work.flops;
    backward += work.backward_flops;
    if (!s.causal) {
      room = std::max(room, kept + work.workspace_bytes);
      continue;
    }
    const int64_t chunk = std::min(h.chunk(level, kForwardArrays), h.pairs(level).end);
    const double gathered = of(chunk * level.queries.rows) * (2 * d + wide + 1) +
                            of(chunk * level.keys.rows) * (2 * d + wide);
    room = std::max(
        room, kept + size * gathered + softmax_work(h.part(level, {0, chunk})).workspace_bytes);
  }
  return {.flops = flops,
          .backward_flops = backward,
          .bytes = size * bytes,
          .peak_bytes = size * rows * (d + 1) + room};
}

}  // namespace attn
