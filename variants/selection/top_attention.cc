// TopForward of attention to the keys with the largest scores; see top_attention.h. A
// strip of queries goes over pieces of keys, which are packed ahead. Each query keeps a short list
// of scores; its softmax is along the list.
#include "variants/selection/top_attention.h"

#include <cmath>
#include <memory>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/recycled.h"
#include "core/base/span.h"
#include "core/base/workers.h"
#include "core/simd/listed_rows.h"
#include "core/simd/row_ops.h"
#include "variants/selection/top_problem.h"
#include "variants/selection/top_strip.h"

namespace attn {
namespace {

class TopForward {
 public:
  // log_sum [batch, heads, q_len]; undefined: not wanted.
  TopForward(const TopProblem& p, const Tensor& out, const KeptKeys* kept,
             const Tensor& log_sum = {})
      : p_(p),
        out_(out),
        log_sum_(log_sum),
        kept_(kept),
        layout_(p.q_len(), p.kv_len(), p.keep, p.index.defined() ? p.index.index_heads() : 0),
        packed_head_(packed_reals(p.kv_len(), p.scored_keys().dim(3))) {}

  void run() {
    pack();
    const int64_t strips = (p_.q_len() + layout_.rows - 1) / layout_.rows;
    run_tasks(p_.choices() * strips, layout_.total, [&](int64_t task, real* work) {
      // Late strips of a causal head cost more than early ones.
      const int64_t at = task % strips, strip = at % 2 ? strips - 1 - at / 2 : at / 2;
      const int64_t begin = strip * layout_.rows;
      choose(task / strips, begin, std::min(begin + layout_.rows, p_.q_len()), work);
    });
  }

 private:
  void pack() {
    const Tensor& keys = p_.scored_keys();
    const int64_t d = keys.dim(3), n = p_.kv_len(), panels = (n + kPanel - 1) / kPanel;
    packed_ =
        Block(static_cast<size_t>(p_.choices() * packed_head_) * sizeof(real), Purpose::workspace);
    run_tasks(p_.choices() * panels, 0, [&](int64_t task, real*) {
      const int64_t choice = task / panels, first = task % panels * kPanel;
      const int64_t count = std::min(kPanel, p_.length(choice * p_.heads_of_choice()) - first);
      if (count > 0)
        pack_transposed(keys.data() + (choice * n + first) * d, count, d, d,
                        panels_of(choice) + first * d);
    });
  }
  real* panels_of(int64_t choice) const {
    return static_cast<real*>(packed_.data()) + choice * packed_head_;
  }

  void choose(int64_t choice, int64_t begin, int64_t end, real* work) const {
    const int64_t head = choice * p_.heads_of_choice();  // the first of them; all see the same
    TopList lists[kTopStrip];
    for (int64_t r = 0; r < end - begin; ++r)
      lists[r] = TopList::in(work + layout_.lists + r * TopList::reals(p_.keep), p_.keep);
    const int64_t seen = p_.visible(head, end - 1);
    for (int64_t first = 0; first < seen; first += kTopSpan) {
      const int64_t cols = std::min(kTopSpan, seen - first);
      for (int64_t at = 0; at < cols; at += kTopPiece)
        score(choice, {begin, end}, first + at, std::min(kTopPiece, cols - at),
              work + layout_.products, work + layout_.scores + at);
      const Mark mark(Part::selection);
      for (int64_t r = 0; r < end - begin; ++r)
        add_to_top(std::min(cols, p_.visible(head, begin + r) - first),
                   work + layout_.scores + r * layout_.stride, first, lists[r]);
    }
    for (int64_t r = 0; r < end - begin; ++r) attend_all(head, begin + r, lists[r], work);
  }

  // Scores of some queries with `cols` keys from `first`, which begins a panel.
  void score(int64_t choice, Span queries, int64_t first, int64_t cols, real* products,
             real* scores) const {
    const int64_t row = choice * p_.q_len() + queries.begin, rows = queries.end - queries.begin;
    if (!p_.index.defined()) {
      const int64_t d = p_.dim();
      product(rows, cols, d, {p_.q.data() + row * d, d}, packed(panels_of(choice) + first * d, d),
              scores, layout_.stride);
      count_flops(2 * static_cast<double>(rows * cols * d));
      return;
    }
    const Mark mark(Part::selection);
    const IndexScores& x = p_.index;
    const int64_t d = x.dim(), each = x.index_heads();
    product(rows * each, cols, d, {x.q.data() + row * each * d, d},
            packed(panels_of(choice) + first * d, d), products, layout_.width);
    for (int64_t r = 0; r < rows; ++r)
      index_scores(cols, each, products + r * each * layout_.width, layout_.width,
                   x.weights.defined() ? x.weights.data() + (row + r) * each : nullptr, x.has_relu,
                   scores + r * layout_.stride);
    count_flops(2 * static_cast<double>(each * rows * cols * d));
  }

  // Query i of all heads from `first` on that share the list.
  void attend_all(int64_t first, int64_t i, TopList& list, real* work) const {
    auto* places = reinterpret_cast<int32_t*>(work + layout_.places);
    if (kept_) places = kept_->places(first * p_.q_len() + i);
    {
      const Mark mark(Part::selection);
      take_top(list, places);
    }
    for (int64_t head = first; head < first + p_.heads_of_choice(); ++head) {
      if (kept_ && head > first)
        std::copy_n(places, list.size, kept_->places(head * p_.q_len() + i));
      attend(head, i, list, places, work);
    }
  }

  void attend(int64_t head, int64_t i, const TopList& list, const int32_t* places,
              real* work) const {
    const int64_t d = p_.dim(), row = head * p_.q_len() + i, keys = head * p_.kv_len() * d;
    const Mark mark(Part::edges);
    const ListedRows rows{list.size, d, places};
    real* const weights = kept_ ? kept_->of_query(row) : work + layout_.logits;
    if (p_.index.defined())
      dots_with_rows(rows, p_.q.data() + row * d, p_.k.data() + keys, weights);
    else
      std::copy_n(list.scores, list.size, weights);
    const real log_sum = listed_softmax(list.size, p_.scale(), weights);
    if (log_sum_.defined()) log_sum_[row] = log_sum;
    weighted_rows(rows, weights, p_.v.data() + keys, out_.data() + row * d);
    count_flops(2 * static_cast<double>((p_.index.defined() ? 2 : 1) * list.size * d));
  }

  const TopProblem& p_;
  const Tensor& out_;
  const Tensor log_sum_;
  const KeptKeys* const kept_;
  const TopLayout layout_;
  const int64_t packed_head_;
  Block packed_;  // all scored keys
};

}  // namespace

real listed_softmax(int64_t count, real scale, real* logits) {
  if (count == 0) return -kInfinity;
  const real top = scale * max_in_row(logits, count);
  const real sum = exp_row(count, logits, scale, top, logits), factor = 1 / sum;
  for (int64_t e = 0; e < count; ++e) logits[e] *= factor;
  return top + std::log(sum);
}

namespace {

// log_sum [batch, heads, q_len]; undefined: not wanted, and so is that of the result.
SoftmaxResult top_result(const TopProblem& p, const Var& q, const Var& k, const Var& v,
                         const Tensor& log_sum) {
  const Tensor out(q.shape());
  if (!recording({q, k, v})) {
    TopForward(p, out, nullptr, log_sum).run();
    return {Var(out), log_sum.defined() ? Var(log_sum) : Var()};
  }
  const auto kept = std::allocate_shared<KeptKeys>(Recycled<KeptKeys>(), p);
  const auto of_log_sum = std::allocate_shared<Tensor>(Recycled<Tensor>());
  TopForward(p, out, kept.get(), log_sum).run();
  TopProblem later = p;
  later.index = {};  // the choice is made
  const Var result = custom_op(out, {q, k, v}, [=](const Tensor& grad, std::span<Tensor> grads) {
    top_backward(later, *kept, grad, grads, *of_log_sum);
  });
  return {result, log_sum.defined() ? handed_log_sum(log_sum, result, of_log_sum) : Var()};
}

}  // namespace

Var top_attention(const Var& q, const Var& k, const Var& v, int64_t keep, const Mask& mask,
                  const IndexScores& index) {
  ATTN_CHECK(k.dim(2) <= TopList::kMostPlaces, "{} keys to choose from, at most {}", k.dim(2),
             TopList::kMostPlaces);
  return top_result({q.value(), k.value(), v.value(), keep, mask, index}, q, k, v, {}).out;
}

SoftmaxResult top_blocks(const Var& q, const Var& k, const Var& v, int64_t keep, int64_t block,
                         std::span<const int64_t> lengths, const IndexScores& index) {
  Mask mask{.causal = true};
  for (const int64_t length : lengths) mask.kv_lengths.push_back(length / block);
  return top_result({q.value(), k.value(), v.value(), keep, mask, index, block}, q, k, v,
                    Tensor({q.dim(0), q.dim(1), q.dim(2)}));
}

Cost top_cost(const AttentionShape& s, int64_t most, int64_t index_heads, int64_t index_dim,
              bool shared, int64_t block) {
  const bool is_indexed = index_heads > 0;
  const int64_t keep = std::max<int64_t>(1, std::min(most, s.kv_len));
  const int64_t heads = s.batch * s.heads, n = s.q_len, strip = std::min(n, top_strip(keep));
  const auto visible = [&](int64_t i) {
    return s.causal ? top_visible(i, n, s.kv_len, s.kv_len, block) : s.kv_len;
  };
  double scored = 0, kept = 0;  // pairs of a head
  for (int64_t i = 0; i < n; i += strip) {
    const int64_t end = std::min(i + strip, n);
    scored += static_cast<double>((end - i) * visible(end - 1));
  }
  for (int64_t i = 0; i < n; ++i) kept += static_cast<double>(std::min(keep, visible(i)));
  const double d = static_cast<double>(s.head_dim), size = sizeof(real),
               all = static_cast<double>(heads),
               choices = static_cast<double>(shared ? s.batch : heads);
  const auto width = static_cast<double>(is_indexed ? index_heads * index_dim : s.head_dim);
  const int64_t tasks = (shared ? s.batch : heads) * ((n + strip - 1) / strip);
  const TopLayout layout(n, s.kv_len, keep, index_heads);
  const double rows = all * static_cast<double>(n) * d,
               keys = all * static_cast<double>(s.kv_len) * d;
  const double packed =
      choices * static_cast<double>(packed_reals(s.kv_len, is_indexed ? index_dim : s.head_dim));
  return {.flops = 2 * (choices * scored * width + all * (is_indexed ? 2 : 1) * kept * d),
          .backward_flops = 8 * all * kept * d,
          .bytes = size * (2 * (rows + keys) + packed),
          .peak_bytes =
              size * (rows + packed) + static_cast<double>(workspace_bytes(tasks, layout.total)),
          .state_bytes = size * 2 * keys};
}

}  // namespace attn
