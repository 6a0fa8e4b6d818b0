// Bounds of all pages by one product of the query's positive and negative parts with the pages'
// most and least keys; then online softmax over the chosen pages. Parallel over heads of keys.
#include "variants/softmax/quest_decoder.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/fetch.h"
#include "variants/api/forgetting.h"
#include "variants/softmax/decode_cache.h"
#include "variants/softmax/softmax_merge.h"

namespace attn {
namespace {

int64_t pages_of(int64_t positions) { return (positions + kQuestPage - 1) / kQuestPage; }

class QuestDecoder final : public Decoder, public TellsPositions {
 public:
  QuestDecoder(const Shape& position, int64_t capacity, const Eviction& eviction)
      : Decoder(position, capacity),
        eviction_(eviction),
        cache_(heads(), capacity, head_dim(), head_dim()),
        bounds_({heads(), 2 * head_dim(), pages_of(capacity)}) {}

  std::vector<std::vector<int32_t>> positions_seen(const Tensor& q) const override;

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    run_tasks(heads(), 0, [&](int64_t head, real*) {
      for (int64_t i = 0; i < len; ++i)
        put(head, length() + i, k.data() + (head * len + i) * dim,
            v.data() + (head * len + i) * dim);
    });
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override;

  // The bounds of a page are made anew, since a step may take the place of one that was taken back.
  void put(int64_t head, int64_t position, const real* k, const real* v) const {
    cache_.put(head, position, k, v);
    const int64_t pages = bounds_.dim(2), dim = head_dim(), page = position / kQuestPage;
    const int64_t first = page * kQuestPage, width = cache_.panel_width(first);
    const real* const keys = cache_.panel(head, first) + first % kPanel;
    real* const most = bounds_.data() + head * 2 * dim * pages + page;
    for (int64_t c = 0; c < dim; ++c) {
      const real* const row = keys + c * width;
      const auto [low, high] = std::minmax_element(row, row + position - first + 1);
      most[c * pages] = *high;
      most[(dim + c) * pages] = *low;
    }
  }
  // The pages that a query reads at `position`, into `chosen`; the own one is the last.
  int64_t choose(int64_t head, int64_t position, const real* q, real* work, int32_t* chosen) const;

  int64_t read_pages(int64_t position) const {
    const int64_t budget = eviction_.positions(position + 1) / kQuestPage;
    return std::min(std::max<int64_t>(1, budget), position / kQuestPage + 1);
  }
  int64_t read_positions(int64_t position) const {
    return (read_pages(position) - 1) * kQuestPage + position % kQuestPage + 1;
  }
  // The bounds of whole pages decide where there are more than are read.
  int64_t ranked_pages(int64_t position) const {
    const int64_t before = position / kQuestPage;
    return read_pages(position) - 1 < before ? before : 0;
  }
  // Begins to load a page: its columns of each row of keys, and its values.
  void fetch_page(int64_t head, int32_t page) const {
    const int64_t first = page * kQuestPage, width = cache_.panel_width(first), dim = head_dim();
    const real* const keys = cache_.panel(head, first) + first % kPanel;
    for (int64_t c = 0; c < dim; ++c) fetch_row(keys + c * width, kQuestPage);
    fetch_row(cache_.values(head, first), kQuestPage * dim);
  }
  int64_t row_bytes() const { return 2 * head_dim() * int64_t{sizeof(real)}; }

  int64_t do_state_bytes() const override {
    return quest_state_bytes(heads(), capacity(), head_dim());
  }
  double do_step_flops() const override {
    return 4 * static_cast<double>(heads() * group() * head_dim() *
                                   (ranked_pages(length()) + read_positions(length())));
  }
  double do_step_bytes() const override {
    return static_cast<double>(heads() * row_bytes() *
                               (group() * read_positions(length()) + ranked_pages(length()) + 1));
  }

  Eviction eviction_;
  PanelCache cache_;
  Tensor bounds_;  // [heads, dim and dim again, pages]: the most of each channel, then the least
};

int64_t QuestDecoder::choose(int64_t head, int64_t position, const real* q, real* work,
                             int32_t* chosen) const {
  const int64_t dim = head_dim(), pages = bounds_.dim(2), own = position / kQuestPage;
  const int64_t count = read_pages(position), ranked = ranked_pages(position);
  std::iota(chosen, chosen + own + 1, 0);
  if (ranked == 0) return count;
  real *const parts = work, *const bound = work + 2 * dim;
  for (int64_t c = 0; c < dim; ++c) {
    parts[c] = std::max(q[c], real(0));
    parts[dim + c] = std::min(q[c], real(0));
  }
  product(1, ranked, 2 * dim, {parts, 2 * dim}, {bounds_.data() + head * 2 * dim * pages, pages},
          bound, ranked);
  std::nth_element(chosen, chosen + count - 1, chosen + own, [&](int32_t a, int32_t b) {
    return bound[a] != bound[b] ? bound[a] > bound[b] : a > b;
  });
  std::sort(chosen, chosen + count - 1);
  chosen[count - 1] = static_cast<int32_t>(own);
  return count;
}

void QuestDecoder::do_step(const real* q, const real* k, const real* v, real* out) {
  const int64_t dim = head_dim(), position = length(), pages = position / kQuestPage + 1;
  const int64_t queries = padded_reals(dim), bounds = padded_reals(2 * dim + pages),
                list = padded_reals(pages * int64_t{sizeof(int32_t)} / int64_t{sizeof(real)} + 1);
  run_tasks(heads(), queries + bounds + list + kQuestPage + dim, [&](int64_t head, real* work) {
    Tally done;
    real *const ranking = work + queries, *const logits = ranking + bounds + list,
                *const sum = logits + kQuestPage;
    auto* const chosen = reinterpret_cast<int32_t*>(ranking + bounds);
    put(head, position, k + head * dim, v + head * dim);
    done.moved<char>(row_bytes());
    done.moved<char>(ranked_pages(position) * row_bytes());
    for (int64_t r = 0; r < group(); ++r) {
      const real* const query = q + (head * group() + r) * dim;
      const int64_t count = choose(head, position, query, ranking, chosen);
      scale_queries(query, 1, dim, work);
      std::fill_n(sum, dim, real(0));
      RowSums found{.sum = sum};
      for (int64_t i = 0; i < count; ++i) {
        if (i + 1 < count) fetch_page(head, chosen[i + 1]);
        const int64_t first = chosen[i] * kQuestPage,
                      some = std::min(kQuestPage, position + 1 - first);
        product(1, some, dim, {work, dim},
                {cache_.panel(head, first) + first % kPanel, cache_.panel_width(first)}, logits,
                kQuestPage);
        add_keys(some, logits, cache_.values(head, first), dim, found);
        done.multiply_adds(2 * some * dim);
        done.moved<char>(some * row_bytes());
      }
      done.multiply_adds(2 * ranked_pages(position) * dim);
      divide_row(dim, sum, found.row_sum, out + (head * group() + r) * dim);
    }
  });
}

// The choice of a step is made again.
std::vector<std::vector<int32_t>> QuestDecoder::positions_seen(const Tensor& q) const {
  ATTN_CHECK(length() > 0, "positions are told of a step alone");
  const int64_t dim = head_dim(), position = length() - 1;
  const Tensor work({padded_reals(2 * dim + pages_of(capacity()))});
  std::vector<std::vector<int32_t>> seen;
  for (int64_t row = 0; row < heads() * group(); ++row) {
    std::vector<int32_t> chosen(static_cast<size_t>(position / kQuestPage + 1));
    chosen.resize(static_cast<size_t>(
        choose(row / group(), position, q.data() + row * dim, work.data(), chosen.data())));
    std::vector<int32_t>& own = seen.emplace_back();
    for (const int32_t page : chosen)
      for (int64_t j = page * kQuestPage; j < std::min(position + 1, (page + 1) * kQuestPage); ++j)
        own.push_back(static_cast<int32_t>(j));
  }
  return seen;
}

}  // namespace

std::unique_ptr<Decoder> quest_decoder(const Shape& position, int64_t capacity,
                                       const Eviction& eviction) {
  return std::make_unique<QuestDecoder>(position, capacity, eviction);
}

int64_t quest_state_bytes(int64_t heads, int64_t positions, int64_t dim) {
  return heads * 2 * dim * (positions + pages_of(positions)) * int64_t{sizeof(real)};
}

}  // namespace attn
