// See block_decoder.h. A mean is made when its block is whole, from the cached rows in their order,
// so that it has the bits of block_means() and a step that is taken back leaves nothing behind.
#include "variants/selection/block_decoder.h"

#include <algorithm>

#include "core/base/counters.h"
#include "core/base/workspace.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "core/simd/transpose.h"
#include "variants/selection/block_choice.h"
#include "variants/selection/block_lists.h"

namespace attn {

BlockDecoder::BlockDecoder(const Shape& position, int64_t capacity, int64_t block, int64_t most,
                           int64_t shared, bool has_value_means, std::vector<int64_t> gate_widths,
                           const CompressedBlocks& compressed)
    : Decoder(position, capacity, std::move(gate_widths)),
      block_(block),
      most_(std::min(most, std::max<int64_t>(0, (capacity + block - 1) / block - 1))),
      shared_(shared),
      compressed_(compressed.stride > 0 ? compressed : CompressedBlocks{block, block}),
      cache_(heads(), capacity, head_dim(), head_dim()),
      means_(heads(), (capacity + compressed_.stride - 1) / compressed_.stride, head_dim(),
             has_value_means ? head_dim() : 0),
      ended_({heads(), (2 + std::min(compressed_.block, capacity)) * head_dim()}) {}

void BlockDecoder::put(int64_t head, int64_t at, const real* k, const real* v) const {
  const int64_t d = head_dim();
  cache_.put(head, at, k, v);
  const int64_t past = at + 1 - compressed_.block;  // where a block that ends here begins
  if (past < 0 || past % compressed_.stride != 0) return;
  const bool has_values = means_.values(head, 1) != means_.values(head, 0);
  real* const sums = ended_.data() + head * ended_.dim(1);
  real* const keys = sums + 2 * d;
  for (int64_t at_row = 0; at_row < compressed_.block;) {
    const int64_t first = past + at_row, column = first % kPanel,
                  count = std::min(kPanel - column, compressed_.block - at_row);
    transpose(d, count, cache_.panel(head, first - column) + column, cache_.panel_width(first),
              keys + at_row * d, d);
    at_row += count;
  }
  compress(head, false, keys, sums);
  if (has_values) compress(head, true, cache_.values(head, past), sums + d);
  means_.put(head, past / compressed_.stride, sums, sums + d);
}

void BlockDecoder::compress(int64_t, bool, const real* rows, real* to) const {
  const int64_t d = head_dim();
  std::fill_n(to, d, real(0));
  for (int64_t i = 0; i < compressed_.block; ++i)
    for (int64_t c = 0; c < d; ++c) to[c] += rows[i * d + c];
  const real factor = 1 / static_cast<real>(compressed_.block);
  for (int64_t c = 0; c < d; ++c) to[c] *= factor;
}

void BlockDecoder::do_extend(const Tensor& k, const Tensor& v) {
  const int64_t len = k.dim(2), d = head_dim();
  over_range(heads(), len * d, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head)
      for (int64_t i = 0; i < len; ++i)
        put(head, length() + i, k.data() + (head * len + i) * d, v.data() + (head * len + i) * d);
  });
}

void BlockDecoder::do_step(const real* q, const real* k, const real* v, real* out) {
  const int64_t d = head_dim(), keys = unit() / group();
  over_range(units(), unit() * d * seen_next(), [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      for (int64_t head = at * keys; head < (at + 1) * keys; ++head)
        put(head, length(), k + head * d, v + head * d);
      answer(at * unit(), q, out);
    }
    const auto count = static_cast<double>(end - begin);
    count_bytes(static_cast<double>(sizeof(real)) * count *
                (unit_numbers() + 2 * static_cast<double>(keys * d)));
  });
}

void BlockDecoder::score(int64_t head, int64_t count, const real* q, real* scores,
                         int64_t stride) const {
  const int64_t d = head_dim();
  for (int64_t first = 0; first < count; first += kPanel)
    product(group(), std::min(kPanel, count - first), d, {q, d},
            {means_.panel(head, first), means_.panel_width(first)}, scores + first, stride);
  count_flops(2 * static_cast<double>(group() * count * d));
}

void BlockDecoder::add(int64_t head, Span positions, int64_t after, const real* queries,
                       real* logits, const GroupSums& sums) const {
  const int64_t d = head_dim();
  for (int64_t at = positions.begin; at < positions.end;) {
    const int64_t panel = at / kPanel * kPanel, end = std::min(panel + kPanel, positions.end);
    const int64_t count = end - at, next = end < positions.end ? end : after;
    const bool is_whole = count == kPanel && next % kPanel == 0;
    const real* const keys = cache_.panel(head, panel) + at % kPanel;
    product(sums.rows, count, d, {queries, d},
            {keys, cache_.panel_width(at), kPanel,
             next >= 0 && is_whole ? cache_.panel(head, next) : nullptr},
            logits, kPanel);
    weigh_keys(count, logits, kPanel, sums);
    add_product(
        sums.rows, d, count, {logits, kPanel},
        {cache_.values(head, at), d, kPanel, next >= 0 ? cache_.values(head, next) : nullptr},
        sums.sum, d, sums.rescale);
    at = end;
  }
  count_flops(4 * static_cast<double>(sums.rows * positions.size() * d));
}

void BlockDecoder::attend(int64_t head, int64_t rows, int64_t count, const int32_t* chosen,
                          const real* queries, real* work, real* out) const {
  const int64_t d = head_dim();
  const GroupSums sums = GroupSums::in(work + rows * kPanel, rows, d);
  for (int64_t e = 0; e < count; ++e)
    add(head, {chosen[e] * block_, (chosen[e] + 1) * block_},
        (e + 1 < count ? chosen[e + 1] : own()) * block_, queries, work, sums);
  add(head, {own() * block_, length() + 1}, -1, queries, work, sums);
  divide(sums, out);
}

void BlockDecoder::divide(const GroupSums& sums, real* out) const {
  for (int64_t r = 0; r < sums.rows; ++r)
    divide_row(head_dim(), sums.sum + r * head_dim(), sums.row_sum[r], out + r * head_dim());
}

namespace {

class MeanChoiceDecoder final : public BlockDecoder {
 public:
  MeanChoiceDecoder(const Shape& position, int64_t capacity, int64_t block, int64_t most)
      : BlockDecoder(position, capacity, block, most, 1, false), room_(*this) {
    work_ = Tensor({heads(), room_.total});
  }

 private:
  struct Room {
    int64_t stride, scores, list, places, query, logits, total;
    explicit Room(const MeanChoiceDecoder& of) {
      WorkspaceParts parts;
      stride = of.blocks();
      scores = parts.take(of.group() * stride);
      list = parts.take(TopList::reals(std::max<int64_t>(1, of.most())));
      places = parts.take(of.most() + 1);
      query = parts.take(of.head_dim());
      logits = parts.take(attend_reals(1, of.head_dim()));
      total = parts.total();
    }
  };

  bool has_choice() const { return own() > most() && most() > 0; }

  void answer(int64_t first, const real* q, real* out) override {
    const int64_t d = head_dim(), head = first / group();
    real* const work = work_.data() + head * room_.total;
    real* const query = work + room_.query;
    auto* const places = reinterpret_cast<int32_t*>(work + room_.places);
    if (has_choice()) score(head, own(), q + first * d, work + room_.scores, room_.stride);
    for (int64_t r = 0; r < group(); ++r) {
      const int64_t at = (first + r) * d;
      const int64_t count = choose_row(own(), work + room_.scores + r * room_.stride, most(),
                                       work + room_.list, places);
      scale_rows_to(q + at, d, logit_factor(d), query);
      attend(head, 1, count, places, query, work + room_.logits, out + at);
    }
  }
  double unit_flops() const override {
    return 2 * static_cast<double>(group() * head_dim() * (has_choice() * own() + 2 * seen_next()));
  }
  double unit_numbers() const override {
    return static_cast<double>(head_dim() * (has_choice() * own() + 2 * group() * seen_next()));
  }

  Room room_;
  Tensor work_;  // [heads, room]
};

}  // namespace

std::unique_ptr<Decoder> mean_choice_decoder(const Shape& position, int64_t capacity, int64_t block,
                                             int64_t most) {
  return std::make_unique<MeanChoiceDecoder>(position, capacity, block, most);
}

}  // namespace attn
