// The three branches of one position; see branch_decoder.h. First all heads of a unit attend to the
// means, which scores the blocks; then each chooses, attends to its blocks and to the window.
#include "variants/selection/branch_decoder.h"

#include <algorithm>

#include "core/base/counters.h"
#include "core/base/workspace.h"
#include "core/simd/row_ops.h"
#include "variants/selection/block_attention.h"
#include "variants/selection/block_choice.h"
#include "variants/selection/block_lists.h"
#include "variants/selection/compressed_attention.h"
#include "variants/selection/gated_branches.h"

namespace attn {
namespace {

class BranchDecoder final : public BlockDecoder {
 public:
  BranchDecoder(const Shape& position, int64_t capacity, const BranchOptions& options)
      : BlockDecoder(position, capacity, options.block, options.most, options.shared, true,
                     {kBranches}),
        window_(options.window),
        room_(*this) {
    work_ = Tensor({heads() * group() / unit(), room_.total});
  }

 private:
  struct Room {
    int64_t stride, scores, sums, queries, list, places, logits, compressed, selected, total;
    explicit Room(const BranchDecoder& of) {
      WorkspaceParts parts;
      const int64_t d = of.head_dim(), unit = of.unit();
      stride = (of.blocks() + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
      scores = parts.take(of.group() * stride);
      sums = parts.take(unit / of.shared() * stride);
      queries = parts.take(unit * d);
      list = parts.take(TopList::reals(std::max<int64_t>(1, of.most())));
      places = parts.take(of.most() + 1);
      logits = parts.take(attend_reals());
      compressed = parts.take(unit * d);
      selected = parts.take(d);
      total = parts.total();
    }
  };

  int64_t ended() const { return (length() + 1) / block(); }
  int64_t in_window() const { return std::min(window_, length()) + 1; }

  void answer(int64_t first, const real* q, real* out) override {
    const int64_t d = head_dim(), g = group();
    real* const work = work_.data() + first / unit() * room_.total;
    real *const queries = work + room_.queries, *const sums = work + room_.sums;
    scale_rows_to(q + first * d, unit() * d, logit_factor(d), queries);
    std::fill_n(sums, unit() / shared() * room_.stride, real(0));
    for (int64_t at = 0; at < unit(); at += g) compress((first + at) / g, at, work);
    auto* const places = reinterpret_cast<int32_t*>(work + room_.places);
    for (int64_t at = 0; at < unit(); ++at) {
      const int64_t head = (first + at) / g;
      if (at % shared() == 0)
        choose_by_weights(own(), sums + at / shared() * room_.stride, most(), work + room_.list,
                          places);
      real* const selected = work + room_.selected;
      attend(head, std::min(most(), own()), places, queries + at * d, work + room_.logits,
             selected);
      real* const to = out + (first + at) * d;
      std::fill_n(to, d, real(0));
      RowSums window{.sum = to};
      add(head, {length() + 1 - in_window(), length() + 1}, queries + at * d, work + room_.logits,
          window);
      divide_row(d, to, window.row_sum, to);
      real factors[kBranches];
      sigmoid_row(kBranches, gates()[0].data() + (first + at) * kBranches, factors);
      const real* const compressed = work + room_.compressed + at * d;
      for (int64_t c = 0; c < d; ++c)
        to[c] = factors[0] * selected[c] + factors[1] * to[c] + factors[2] * compressed[c];
    }
  }

  // The compressed branch of a key head's queries, and what it adds to the scores of blocks.
  void compress(int64_t head, int64_t at, real* work) const {
    const int64_t d = head_dim(), g = group(), count = ended();
    real *const scores = work + room_.scores, *const out = work + room_.compressed + at * d;
    std::fill_n(out, g * d, real(0));
    if (count == 0) return;
    score(head, count, work + room_.queries + at * d, scores, room_.stride);
    count_flops(2 * static_cast<double>(g * count * d));  // of their values
    for (int64_t r = 0; r < g; ++r) {
      real* const row = scores + r * room_.stride;
      real* const sums = work + room_.sums + (at + r) / shared() * room_.stride;
      if (shared() == 1) std::copy_n(row, count, sums);
      RowSums found{.sum = out + r * d};
      real rescale = 1;
      add_keys(count, row, room_.stride, value_means(head), d,
               {1, found.sum, &found.row_max, &found.row_sum, &rescale});
      divide_row(d, found.sum, found.row_sum, found.sum);
      for (int64_t c = 0; shared() > 1 && c < count; ++c) sums[c] += row[c] / found.row_sum;
    }
  }

  double unit_flops() const override {
    return 4 * static_cast<double>(unit() * head_dim() * (ended() + seen_next() + in_window()));
  }
  double unit_numbers() const override {
    return 2 * static_cast<double>(head_dim() * (unit() / group() * ended() +
                                                 unit() * (seen_next() + in_window())));
  }

  int64_t window_;
  Room room_;
  Tensor work_;  // [units, room]
};

}  // namespace

std::unique_ptr<Decoder> branch_decoder(const Shape& position, int64_t capacity,
                                        const BranchOptions& options) {
  if (position[2] % options.shared != 0 && options.shared % position[2] != 0) return nullptr;
  if (position[1] * position[2] % options.shared != 0) return nullptr;
  return std::make_unique<BranchDecoder>(position, capacity, options);
}

Cost branch_cost(const AttentionShape& s, const BranchOptions& o) {
  const BlockGrid grid{s.batch, s.heads, s.q_len, s.head_dim, o.block};
  const double heads = static_cast<double>(grid.heads()), d = static_cast<double>(s.head_dim),
               size = sizeof(real), out = size * heads * d * static_cast<double>(s.q_len);
  const BlockWork blocks = block_work(grid, o.most);
  AttentionShape causal = s;
  causal.causal = true;
  const Cost window = softmax_cost(causal, {.causal = true, .window = o.window});
  const double compressed = heads * d * compressed_pairs(grid);
  const auto lists = static_cast<double>(BlockQueries::bytes(grid, o.most)),
             chosen = static_cast<double>(ChosenBlocks::bytes(grid, o.most));
  const double means = size * 2 * heads * d * static_cast<double>(grid.blocks());
  const double first = std::max(compressed_bytes(grid, o.shared, o.most) + means, lists);
  return {.flops = 4 * compressed + blocks.flops + window.flops,
          .backward_flops = 10 * compressed + blocks.backward_flops + window.backward_flops,
          .bytes = 8 * out + lists + size * kBranches * heads * static_cast<double>(s.q_len),
          .peak_bytes = std::max({out + chosen + first, out + lists + blocks.peak_bytes,
                                  2 * out + window.peak_bytes, 4 * out}),
          .state_bytes = static_cast<double>(
              block_state_bytes(grid.heads(), s.kv_len, s.head_dim, o.block, true))};
}

}  // namespace attn
