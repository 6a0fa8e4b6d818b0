// Forward of LSH attention; see bucket_attention.h. The rows of a chunk are gathered, its logits
// are masked by comparing codes, and its result is merged with those of earlier rounds. Rounds are
// sequential, so that no two tasks write the same row.
#include "variants/hashing/bucket_attention.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/softmax_rows.h"
#include "variants/hashing/bucket_decoder.h"
#include "variants/hashing/gathered_chunks.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

BucketProblem problem_of(const Tensor& q, const Tensor& v, const Tensor& rotations,
                         const BucketOptions& options, const Mask& mask) {
  BucketProblem p{q, v, rotations, options, mask, nullptr, {}};
  p.options.chunk = options.chunk_of(p.length());
  ATTN_CHECK(rotations.dim(1) <= kMaxRounds, "{} rounds of hashing, at most {}", rotations.dim(1),
             kMaxRounds);
  // Not causal, codes count chunks, and 3 keeps the buckets apart; causal, they count positions.
  p.sorted = std::allocate_shared<SortedRounds>(
      Recycled<SortedRounds>(), q, rotations, options.hash, options.one_bucket, mask.kv_lengths,
      mask.causal ? 1 : p.options.chunk, mask.causal ? p.window() + 1 : 3);
  for (int64_t count = 1; count <= rotations.dim(1); ++count)
    p.log_count[static_cast<size_t>(count)] = std::log2(static_cast<real>(count));
  return p;
}

// Chunks of a task: neighbours share what is gathered.
int64_t group_of(int64_t all_chunks) {
  return std::clamp<int64_t>(all_chunks / (4 * threads()), 1, 16);
}

class Forward {
 public:
  // state [2, heads, len]: the largest logit and the sum of weights of each row of `out` so far.
  Forward(const BucketProblem& p, const Tensor& out, const Tensor& state)
      : p_(p),
        out_(out),
        row_max_(state.data()),
        row_sum_(state.data() + p.heads() * p.length()),
        layout_(p.length(), p.dim(), p.sorted->rounds(), p.options.chunk, false) {}

  void run() const {
    const int64_t rows = p_.heads() * p_.length();
    out_.fill(0);
    std::fill_n(row_max_, rows, -kInfinity);
    std::fill_n(row_sum_, rows, real(0));
    const int64_t chunks = p_.max_chunks(), group = group_of(p_.heads() * chunks);
    const int64_t groups = (chunks + group - 1) / group;
    for (int64_t round = 0; round < p_.sorted->rounds(); ++round)
      run_tasks(p_.heads() * groups, layout_.total, [&](int64_t task, real* work) {
        const int64_t head = task / groups, first = task % groups * group;
        add(head, round, {first, std::min(first + group, p_.chunks(head))}, work);
      });
    over_range(rows, p_.dim(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) finish(row);
    });
  }

 private:
  void add(int64_t head, int64_t round, Span chunks, real* work) const {
    GatheredChunks gathered(p_, layout_, head, round, work);
    int64_t own = 0;
    for (int64_t c = chunks.begin; c < chunks.end; ++c) {
      const int64_t before = p_.before(head, c);
      if (c > chunks.begin)
        gathered.drop_before(own);
      else if (before >= 0)
        gathered.append(p_.chunk(head, before));
      own = gathered.count();
      gathered.append(p_.chunk(head, c));
      gathered.pack();
      attend(gathered, p_.chunk(head, c), own, work);
    }
  }

  // `own`: the column of the first query's own key.
  void attend(const GatheredChunks& gathered, Span queries, int64_t own, real* work) const {
    const int64_t d = p_.dim();
    real row_max[kBucketStrip], row_sum[kBucketStrip], rescale[kBucketStrip];
    for (int64_t s = queries.begin; s < queries.end; ++s)
      fetch_row(out_.data() + gathered.position(s) * d, d);
    for (int64_t s = queries.begin; s < queries.end; s += kBucketStrip) {
      const int64_t rows = std::min(kBucketStrip, queries.end - s);
      gathered.fill_scores({s, s + rows}, own + s - queries.begin);
      std::fill_n(row_max, rows, -kInfinity);
      std::fill_n(row_sum, rows, real(0));
      online_softmax_rows(rows, gathered.padded(), gathered.scores(), layout_.stride, row_max,
                          row_sum, rescale);
      product(rows, d, gathered.count(), {gathered.scores(), layout_.stride},
              {gathered.values(), d}, work + layout_.out, d);
      const Mark mark(Part::softmax);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = gathered.position(s + r);
        RowSums all{out_.data() + at * d, row_max_[at], row_sum_[at]};
        merge_row(d, {work + layout_.out + r * d, row_max[r], row_sum[r]}, all);
        row_max_[at] = all.row_max, row_sum_[at] = all.row_sum;
      }
    }
    count_flops(4 * static_cast<double>((queries.end - queries.begin) * gathered.count() * d));
  }

  // A query that no round shows another key sees itself.
  void finish(int64_t row) const {
    const int64_t d = p_.dim();
    real* const out = out_.data() + row * d;
    real* const log_sum = row_max_;  // the same memory: from here on the row's log-sum-exp
    if (row_sum_[row] == 0) {
      if (row % p_.length() < p_.valid(row / p_.length()))
        std::copy_n(p_.v.data() + row * d, d, out);
      log_sum[row] = kInfinity;
      return;
    }
    divide_row(d, out, row_sum_[row], out);
    log_sum[row] = row_max_[row] + std::log2(row_sum_[row]);
  }

  const BucketProblem& p_;
  const Tensor& out_;
  real *const row_max_, *const row_sum_;
  const BucketLayout layout_;
};

}  // namespace

Var bucket_attention(const Var& q, const Var& k, const Var& v, const Tensor& rotations,
                     const BucketOptions& options, const Mask& mask) {
  const BucketProblem p = problem_of(q.value(), v.value(), rotations, options, mask);
  const Tensor out(q.shape()), state({2, p.heads(), p.length()});
  Forward(p, out, state).run();
  return custom_op(out, {q, k, v}, [p, out, state](const Tensor& grad, std::span<Tensor> grads) {
    bucket_backward(p, out, state.data(), grad, grads);
  });
}

Cost bucket_cost(const AttentionShape& s, int64_t rounds, const BucketOptions& options) {
  const int64_t heads = s.batch * s.heads, n = s.q_len, chunk = std::min(options.chunk_of(n), n);
  const int64_t chunks = (n + chunk - 1) / chunk, last = n - (chunks - 1) * chunk;
  // All but the first chunk see two; without buckets the first sees the last beside itself.
  int64_t pairs = (chunks - 1) * chunk * chunk + last * last;
  if (chunks > 1) pairs += (chunks - 2) * chunk * chunk + last * chunk;
  if (chunks > 1 && !options.masked) pairs += chunk * last;
  const double d = static_cast<double>(s.head_dim), size = sizeof(real);
  const double seen = static_cast<double>(heads * rounds * pairs) * d;
  const double rows = static_cast<double>(heads * n);
  const double hashing =
      options.one_bucket ? 0
                         : 2 * rows * d * static_cast<double>(rounds * options.hash.directions());
  const BucketLayout layout(n, s.head_dim, rounds, chunk, false);
  const double hashed =
      static_cast<double>(SortedRounds::workspace(heads, n, rounds, s.head_dim, options.hash));
  const double held = static_cast<double>(SortedRounds::bytes(heads, rounds, n));
  Cost cost;
  cost.flops = hashing + 4 * seen;
  cost.backward_flops = 10 * seen;
  cost.bytes = size * 4 * rows * d + held;
  cost.peak_bytes =
      held + std::max(hashed, size * rows * (d + 2) + static_cast<double>(workspace_bytes(
                                                          heads * chunks, layout.total)));
  cost.state_bytes =
      static_cast<double>(bucket_state_bytes(heads, s.kv_len, s.head_dim, rounds, options));
  return cost;
}

}  // namespace attn
