// See top_decoder.h. The scores are products with panels of keys, as in the forward, so that both
// choose the same keys. Parallel over heads.
#include "variants/selection/top_decoder.h"

#include <cmath>
#include <vector>

#include "core/base/counters.h"
#include "core/base/workspace.h"
#include "core/simd/fetch.h"
#include "core/simd/listed_rows.h"
#include "core/simd/rows.h"
#include "variants/selection/top_attention.h"
#include "variants/selection/top_strip.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

class TopDecoder final : public Decoder {
 public:
  TopDecoder(const Shape& position, int64_t capacity, int64_t keep, const IndexRows& index)
      : Decoder(position, capacity),
        keep_(std::min(keep, capacity)),
        index_(index),
        cache_(heads(), capacity, index.heads > 0 ? index.dim : head_dim(), head_dim()),
        room_(*this),
        work_({heads(), room_.total}),
        lists_(static_cast<size_t>(heads() * group())) {
    if (is_indexed()) keys_ = Tensor({heads(), capacity, head_dim()});
  }

 private:
  // Of one head's step: offsets into its workspace.
  struct Room {
    int64_t scores, products, lists, logits, places, queries, weights, key, total;
    explicit Room(const TopDecoder& of) {
      WorkspaceParts parts;
      scores = parts.take(of.group() * kPanel);
      products = parts.take(of.index_.heads * kPanel);
      lists = parts.take(of.group() * TopList::reals(of.keep_));
      logits = parts.take(of.keep_);
      places = parts.take(of.keep_);
      queries = parts.take(of.index_.heads * of.index_.dim);
      weights = parts.take(of.index_.heads);
      key = parts.take(of.index_.dim);
      total = parts.total();
    }
  };
  bool is_indexed() const { return index_.heads > 0; }
  Right keys_of_panel(int64_t head, int64_t first) const {
    const real* const panel = cache_.panel(head, first);
    return {panel, cache_.panel_width(first), kPanel, ahead_of(panel)};
  }

  void put(int64_t head, int64_t at, const real* k, const real* v) const {
    if (!is_indexed()) return cache_.put(head, at, k, v);
    real* const key = work_of(head) + room_.key;
    index_.key(head, k, key);
    cache_.put(head, at, key, v);
    std::copy_n(k, head_dim(), keys_.data() + (head * capacity() + at) * head_dim());
  }
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    over_range(heads(), len * dim, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head)
        for (int64_t i = 0; i < len; ++i)
          put(head, length() + i, k.data() + (head * len + i) * dim,
              v.data() + (head * len + i) * dim);
    });
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim();
    over_range(heads(), group() * length() * dim, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        put(head, length(), k + head * dim, v + head * dim);
        answer(head, q + head * group() * dim, out + head * group() * dim);
      }
      const auto count = static_cast<double>(end - begin);
      count_flops(count * head_flops());
      count_bytes(static_cast<double>(sizeof(real)) * count * static_cast<double>(head_numbers()));
    });
  }
  real* work_of(int64_t head) const { return work_.data() + head * room_.total; }

  // q, out [group, dim]
  void answer(int64_t head, const real* q, real* out) {
    real* const work = work_of(head);
    const int64_t dim = head_dim(), seen = length() + 1;
    TopList* const lists = lists_.data() + head * group();
    for (int64_t r = 0; r < group(); ++r)
      lists[r] = TopList::in(work + room_.lists + r * TopList::reals(keep_), keep_);
    for (int64_t first = 0; first < seen; first += kPanel) {  // the last panel is narrower
      const int64_t cols = std::min(kPanel, seen - first);
      if (is_indexed()) break;
      product(group(), cols, dim, {q, dim}, keys_of_panel(head, first), work + room_.scores,
              kPanel);
      for (int64_t r = 0; r < group(); ++r)
        add_to_top(cols, work + room_.scores + r * kPanel, first, lists[r]);
    }
    for (int64_t r = 0; r < group(); ++r) {
      if (is_indexed()) add_indexed(head, r, q + r * dim, lists[r], work);
      attend(head, q + r * dim, lists[r], out + r * dim, work);
    }
  }

  void add_indexed(int64_t head, int64_t r, const real* q, TopList& list, real* work) const {
    const int64_t d = index_.dim, seen = length() + 1;
    real *const queries = work + room_.queries, *const weights = work + room_.weights;
    index_.query(head * group() + r, q, queries, weights);
    for (int64_t first = 0; first < seen; first += kPanel) {
      const int64_t cols = std::min(kPanel, seen - first);
      product(index_.heads, cols, d, {queries, d}, keys_of_panel(head, first),
              work + room_.products, kPanel);
      index_scores(cols, index_.heads, work + room_.products, kPanel, weights, index_.has_relu,
                   work + room_.scores);
      add_to_top(cols, work + room_.scores, first, list);
    }
  }

  void attend(int64_t head, const real* q, TopList& list, real* out, real* work) const {
    auto* const places = reinterpret_cast<int32_t*>(work + room_.places);
    real* const logits = work + room_.logits;
    const int64_t dim = head_dim(), count = take_top(list, places);
    const ListedRows rows{count, dim, places, true};
    if (is_indexed())
      dots_with_rows(rows, q, keys_.data() + head * capacity() * dim, logits);
    else
      std::copy_n(list.scores, count, logits);
    listed_softmax(count, static_cast<real>(1 / std::sqrt(static_cast<double>(dim))), logits);
    weighted_rows(rows, logits, cache_.values(head, 0), out);
  }

  int64_t kept_next() const { return std::min(keep_, length() + 1); }
  double head_flops() const {
    const int64_t dim = head_dim(), seen = length() + 1;
    if (!is_indexed()) return 2 * static_cast<double>(group() * dim * (seen + kept_next()));
    return index_.key_flops +
           static_cast<double>(group()) *
               (index_.query_flops +
                2 * static_cast<double>(index_.heads * index_.dim * seen + 2 * dim * kept_next()));
  }
  int64_t head_numbers() const {  // that are read, and the position that is written
    const int64_t dim = head_dim(), seen = length() + 1;
    if (!is_indexed()) return dim * (seen + group() * kept_next() + 2);
    return index_.dim * (group() * seen + 1) + dim * (2 * group() * kept_next() + 2);
  }
  int64_t do_state_bytes() const override {
    return cache_.bytes() +
           keys_.shape().size() * is_indexed() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override { return static_cast<double>(heads()) * head_flops(); }
  double do_step_bytes() const override {
    return static_cast<double>(sizeof(real)) * static_cast<double>(heads() * head_numbers());
  }

  int64_t keep_;
  IndexRows index_;
  PanelCache cache_;  // of scored keys, and values
  Tensor keys_;       // [heads, capacity, dim], with an indexer
  Room room_;
  Tensor work_;  // [heads, room]
  std::vector<TopList> lists_;
};

}  // namespace

std::unique_ptr<Decoder> top_decoder(const Shape& position, int64_t capacity, int64_t keep,
                                     const IndexRows& index) {
  return std::make_unique<TopDecoder>(position, capacity, keep, index);
}

}  // namespace attn
