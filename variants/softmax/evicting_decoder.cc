// Attention of a step to the positions that the cache still holds, and the choice of what goes; see
// eviction.h. What a step added is settled before the next call, so that a step can be taken back.
// Parallel over heads of keys.
#include "variants/softmax/evicting_decoder.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "variants/softmax/quest_decoder.h"

namespace attn {

void EvictingDecoder::put(int64_t head, int64_t slot, int64_t position, const real* k,
                          const real* v) {
  held_.put(head, slot, position, k, v);
  if (!records_of(eviction_.method).scores) return;
  double& score = held_.scores(head)[slot] = 0;
  if (eviction_.method == Evict::random) score = eviction_draw(eviction_.seed, head, position);
  if (eviction_.method == Evict::norm)
    for (int64_t c = 0; c < head_dim(); ++c)
      score -= static_cast<double>(k[c]) * static_cast<double>(k[c]);
}

void EvictingDecoder::score(int64_t head, const real* q, int64_t rows, int64_t count, real* queries,
                            real* logits) const {
  const int64_t dim = head_dim();
  scale_queries(q, rows, dim, queries);
  score_panels(held_.cache(), held_.slots(), dim, head, 0, count, rows, queries, logits,
               row_width(count));
}

// What the last step added, or what is left of it if it was taken back.
void EvictingDecoder::settle() {
  if (!is_stepped_) return;
  is_stepped_ = false;
  if (length() < seen_) {
    ATTN_CHECK(length() == seen_ - 1, "a decoder that forgets takes back one step, not {}",
               seen_ - length());
    --count_;
    seen_ = length();
    return;
  }
  if (eviction_.method == Evict::h2o)
    for (int64_t head = 0; head < heads(); ++head)
      for (int64_t s = 0; s < count_; ++s)
        held_.scores(head)[s] += static_cast<double>(held_.weights(head)[s]);
  if (!has_victims_) return;
  --count_;
  run_tasks(heads(), head_dim(), [&](int64_t head, real* key) {
    const int64_t slot = victims_[static_cast<size_t>(head / together_)];
    if (slot < count_) held_.copy(head, held_, count_, slot, key);
  });
}

double EvictingDecoder::rank(int64_t head, int64_t slot, int64_t so_far, int64_t budget) const {
  const int64_t position = held_.positions(head)[slot];
  switch (eviction_.method) {
    case Evict::sinks:
      return position < kSinkPositions ? 1e18 * static_cast<double>(kSinkPositions - position)
                                       : static_cast<double>(position);
    case Evict::norm:
    case Evict::random:
      return held_.scores(head)[slot];
    case Evict::h2o:
      if (position >= so_far - budget / 2) return static_cast<double>(kInfinity);
      return held_.scores(head)[slot] +
             (is_stepped_ ? static_cast<double>(held_.weights(head)[slot]) : 0);
    case Evict::tova: {
      double sum = 0;
      for (int64_t h = head; h < head + together_; ++h)
        sum += static_cast<double>(held_.weights(h)[slot]);
      return sum;
    }
    default:
      return static_cast<double>(position);
  }
}

// After a step: the slot of each choice that is over the budget.
void EvictingDecoder::choose_victims() {
  const int64_t so_far = length() + 1, budget = eviction_.positions(so_far);
  has_victims_ = !eviction_.at_prompt_alone && count_ > budget;
  if (!has_victims_) return;
  run_tasks(heads() / together_, 0, [&](int64_t choice, real*) {
    const int64_t head = choice * together_;
    std::pair<double, int32_t> least(static_cast<double>(kInfinity), 0);
    int32_t& victim = victims_[static_cast<size_t>(choice)] = 0;
    for (int64_t s = 0; s < count_; ++s) {
      const std::pair<double, int32_t> here(rank(head, s, so_far, budget),
                                            held_.positions(head)[s]);
      if (s > 0 && !(here < least)) continue;
      least = here;
      victim = static_cast<int32_t>(s);
    }
  });
}

void EvictingDecoder::do_step(const real* q, const real* k, const real* v, real* out) {
  settle();
  end_prompt();
  const int64_t dim = head_dim(), rows = group(), slot = count_++;
  const bool weighs = records_of(eviction_.method).weights;
  const int64_t width = row_width(count_);
  run_tasks(heads(), padded_reals(rows * dim) + rows * width + GroupSums::reals(rows, dim),
            [&](int64_t head, real* work) {
              Tally done;
              put(head, slot, length(), k + head * dim, v + head * dim);
              real* const logits = work + padded_reals(rows * dim);
              const GroupSums found = GroupSums::in(logits + rows * width, rows, dim);
              score(head, q + head * rows * dim, rows, count_, work, logits);
              weigh_keys(count_, logits, width, found);
              add_values(count_, logits, width, held_.cache().values(head, 0), dim, found);
              real* const sums = weighs ? held_.weights(head) : nullptr;
              if (weighs) std::fill_n(sums, count_, real(0));
              for (int64_t r = 0; r < rows; ++r) {
                divide_row(dim, found.sum + r * dim, found.row_sum[r],
                           out + (head * rows + r) * dim);
                const real factor = 1 / found.row_sum[r];
                for (int64_t s = 0; weighs && s < count_; ++s)
                  sums[s] += factor * logits[r * width + s];
              }
              done.multiply_adds(2 * rows * count_ * dim);
              done.moved<char>((count_ + 1) * slot_bytes());
            });
  seen_ = length() + 1;
  is_stepped_ = true;
  choose_victims();
}

std::vector<std::vector<int32_t>> EvictingDecoder::positions_seen(const Tensor&) const {
  ATTN_CHECK(is_stepped_ && length() == seen_, "positions are told of a step alone");
  std::vector<std::vector<int32_t>> seen;
  for (int64_t row = 0; row < heads() * group(); ++row) {
    const int32_t* const positions = held_.positions(row / group());
    std::vector<int32_t>& own = seen.emplace_back(positions, positions + count_);
    std::sort(own.begin(), own.end());
  }
  return seen;
}

// How many positions the next step sees.
int64_t EvictingDecoder::next_seen() const {
  int64_t held = count_ - (is_taken_back() ? 1 : 0);
  const bool forgets = prompt_ || !eviction_.at_prompt_alone;
  if (forgets) held = std::min(held, eviction_.positions(length()));
  return held + 1;
}

std::unique_ptr<Decoder> evicting_softmax_decoder(const Shape& position, int64_t capacity,
                                                  const Eviction& eviction) {
  ATTN_CHECK(eviction.method != Evict::none, "a decoder that forgets needs a method");
  if (eviction.method == Evict::quest) return quest_decoder(position, capacity, eviction);
  return std::make_unique<EvictingDecoder>(position, capacity, eviction);
}

int64_t eviction_state_bytes(const Eviction& eviction, const AttentionShape& shape) {
  const int64_t heads = shape.batch * shape.heads, n = shape.kv_len;
  if (eviction.method == Evict::quest) return quest_state_bytes(heads, n, shape.head_dim);
  const int64_t slots = eviction.at_prompt_alone ? std::min(eviction.positions(n - 1), n - 1) + 1
                                                 : std::min(eviction.positions(n) + 1, n);
  return HeldPositions::bytes_of(heads, slots, shape.head_dim, records_of(eviction.method));
}

}  // namespace attn
