// Positions that are appended at once: their queries weigh them, and the end of the prompt keeps
// the best; see eviction.h. Parallel over heads of keys.
#include <numeric>
#include <utility>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "variants/softmax/evicting_decoder.h"

namespace attn {
namespace {

constexpr int64_t kPromptRows = 32;  // queries at a time: their logits of 16k positions are 2 MiB

}  // namespace

// H2O: the weights of the `len` queries that were just appended behind `before` slots.
void EvictingDecoder::add_prompt_weights(int64_t head, int64_t len, int64_t before,
                                         real* work) const {
  double* const scores = held_.scores(head);
  Tally done;
  for (int64_t r = 0; r < group(); ++r)
    for (int64_t first = 0; first < len; first += kPromptRows) {
      const int64_t rows = std::min(kPromptRows, len - first), count = before + first + rows;
      const real* const q = queries_.data() + ((head * group() + r) * len + first) * head_dim();
      each_row(
          head, q, rows, count, work, [&](int64_t i) { return before + first + i + 1; },
          [&](int64_t i, const real* weights, double factor) {
            for (int64_t s = 0; s < before + first + i + 1; ++s)
              scores[s] += factor * static_cast<double>(weights[s]);
          });
      done.multiply_adds(rows * count * head_dim());
    }
}

// Of a prompt, as many of the last queries as the method may ask for.
void EvictingDecoder::remember_queries(int64_t len) {
  const int64_t most = eviction_.method == Evict::snapkv ? kObservedQueries : 1;
  const int64_t old = queries_held_.defined() ? queries_held_.dim(2) : 0;
  const int64_t count = std::min(most, old + len), fresh = std::min(count, len);
  const Tensor kept({heads(), group(), count, head_dim()});
  for (int64_t row = 0; row < heads() * group(); ++row) {
    real* const to = kept.data() + row * count * head_dim();
    std::copy_n(queries_.data() + ((row + 1) * len - fresh) * head_dim(), fresh * head_dim(),
                to + (count - fresh) * head_dim());
    if (count > fresh)
      std::copy_n(queries_held_.data() + ((row + 1) * old - (count - fresh)) * head_dim(),
                  (count - fresh) * head_dim(), to);
  }
  queries_held_ = kept;
}

void EvictingDecoder::do_extend(const Tensor& k, const Tensor& v) {
  settle();
  const int64_t len = k.dim(2), before = count_, dim = head_dim();
  if (count_ + len > held_.slots()) {
    HeldPositions wider = made(count_ + len);
    run_tasks(heads(), dim, [&](int64_t head, real* key) {
      for (int64_t s = 0; s < count_; ++s) wider.copy(head, held_, s, s, key);
    });
    held_ = std::move(wider);
  }
  const bool adds_up = eviction_.method == Evict::h2o;
  run_tasks(heads(), adds_up ? weight_reals(kPromptRows, before + len) : 0,
            [&](int64_t head, real* work) {
              for (int64_t i = 0; i < len; ++i)
                put(head, before + i, length() + i, k.data() + (head * len + i) * dim,
                    v.data() + (head * len + i) * dim);
              if (adds_up) add_prompt_weights(head, len, before, work);
            });
  if (weighs_prompts() && !adds_up) remember_queries(len);
  queries_ = {};
  if (!prompt_) prompt_ = length();
  count_ += len;
  seen_ = length() + len;
}

// TOVA at the end of a prompt: the weights of its last query.
void EvictingDecoder::weigh_last_query() {
  run_tasks(heads(), weight_reals(group(), count_), [&](int64_t head, real* work) {
    real* const sums = held_.weights(head);
    std::fill_n(sums, count_, real(0));
    each_row(
        head, queries_held_.data() + head * group() * head_dim(), group(), count_, work,
        [&](int64_t) { return count_; },
        [&](int64_t, const real* weights, double factor) {
          for (int64_t s = 0; s < count_; ++s)
            sums[s] += static_cast<real>(factor * static_cast<double>(weights[s]));
        });
  });
}

// SnapKV: the votes of the last queries of the prompt for the positions before the `window` last,
// smoothed over neighbours. Slots of a prompt stand in the order of positions, behind the others.
std::vector<double> EvictingDecoder::observed(int64_t head, int64_t window) const {
  const int64_t many = queries_held_.dim(2), asked = std::min(window, many);
  std::vector<double> votes(static_cast<size_t>(count_), 0.0), ranks(votes.size());
  const Block work(static_cast<size_t>(weight_reals(asked, count_)) * sizeof(real),
                   Purpose::workspace);
  for (int64_t r = 0; r < group(); ++r) {
    const real* const q =
        queries_held_.data() + ((head * group() + r) * many + many - asked) * head_dim();
    each_row(
        head, q, asked, count_, static_cast<real*>(work.data()),
        [&](int64_t i) { return count_ - asked + i + 1; },
        [&](int64_t, const real* weights, double factor) {
          for (size_t s = 0; s < votes.size(); ++s)
            votes[s] += factor * static_cast<double>(weights[s]);
        });
  }
  const int32_t* const positions = held_.positions(head);
  std::vector<int32_t> order(votes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return positions[a] < positions[b]; });
  const int64_t before = std::count_if(positions, positions + count_, [&](int32_t position) {
    return position < length() - window;
  });
  for (int64_t c = 0; c < count_; ++c) {
    double& sum = ranks[static_cast<size_t>(order[static_cast<size_t>(c)])];
    sum = c < before ? 0 : static_cast<double>(kInfinity);
    for (int64_t d = std::max<int64_t>(0, c - kNeighboursAveraged);
         d <= std::min(before - 1, c + kNeighboursAveraged); ++d)
      sum += votes[static_cast<size_t>(order[static_cast<size_t>(d)])];
  }
  return ranks;
}

// The slots that a choice keeps, ascending.
std::vector<int32_t> EvictingDecoder::best(int64_t choice, int64_t budget) const {
  const int64_t head = choice * together_;
  std::vector<double> ranks;
  if (eviction_.method == Evict::snapkv)
    ranks = observed(head, std::min(kObservedQueries, (budget + 1) / 2));
  else
    for (int64_t s = 0; s < count_; ++s) ranks.push_back(rank(head, s, length(), budget));
  const int32_t* const positions = held_.positions(head);
  std::vector<int32_t> slots(ranks.size());
  std::iota(slots.begin(), slots.end(), 0);
  std::nth_element(slots.begin(), slots.begin() + budget, slots.end(), [&](int32_t a, int32_t b) {
    const double left = ranks[static_cast<size_t>(a)], right = ranks[static_cast<size_t>(b)];
    return left != right ? left > right : positions[a] > positions[b];
  });
  slots.resize(static_cast<size_t>(budget));
  std::sort(slots.begin(), slots.end());
  return slots;
}

void EvictingDecoder::end_prompt() {
  if (!prompt_) return;
  const int64_t budget = eviction_.positions(length()), kept = std::min(count_, budget);
  const int64_t slots = eviction_.at_prompt_alone ? kept + capacity() - length() : first_slots();
  if (kept < count_ && eviction_.method == Evict::tova) weigh_last_query();
  if (kept < count_ || slots < held_.slots()) {
    HeldPositions fewer = made(slots);
    run_tasks(heads() / together_, head_dim(), [&](int64_t choice, real* key) {
      std::vector<int32_t> all(static_cast<size_t>(count_));
      std::iota(all.begin(), all.end(), 0);
      if (kept < count_) all = best(choice, budget);
      for (int64_t h = choice * together_; h < (choice + 1) * together_; ++h)
        for (int64_t s = 0; s < kept; ++s)
          fewer.copy(h, held_, all[static_cast<size_t>(s)], s, key);
    });
    held_ = std::move(fewer);
    count_ = kept;
  }
  queries_held_ = {};
  prompt_.reset();
}

}  // namespace attn
