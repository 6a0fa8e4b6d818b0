// The three branches of one position; see branch_decoder.h. First all heads of a unit attend to the
// compressed rows, which scores the blocks; then each chooses, attends to its blocks and to the
// window.
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
                     {kBranches}, options.compressed),
        window_(options.window),
        keys_(options.keys),
        values_(options.values),
        room_(*this) {
    work_ = Tensor({heads() * group() / unit(), room_.total});
    if (keys_.defined()) network_work_ = Tensor({heads(), network_reals(keys_)});
  }

 private:
  struct Room {
    int64_t stride, block_stride, scores, sums, queries, list, places, logits, compressed, selected,
        total;
    explicit Room(const BranchDecoder& of) {
      WorkspaceParts parts;
      const int64_t d = of.head_dim(), unit = of.unit();
      const int64_t rows = (of.capacity() + of.compressed().stride - 1) / of.compressed().stride;
      stride = (rows + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
      block_stride = (of.blocks() + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
      scores = parts.take(of.group() * stride);
      sums = parts.take(unit / of.shared() * block_stride);
      queries = parts.take(unit * d);
      list = parts.take(TopList::reals(std::max<int64_t>(1, of.most())));
      places = parts.take(of.most() + 1);
      logits = parts.take(attend_reals(of.group(), d));
      compressed = parts.take(unit * d);
      selected = parts.take(unit * d);
      total = parts.total();
    }
  };

  // How many query heads share both keys and a choice.
  int64_t together() const { return std::min(shared(), group()); }
  int64_t ended() const { return compressed().ended(length() + 1); }
  // Whether the scores of blocks are the logits themselves, whose order a softmax does not change.
  bool has_plain_scores() const { return shared() == 1 && is_aligned(compressed(), block()); }
  int64_t in_window() const { return std::min(window_, length()) + 1; }

  void answer(int64_t first, const real* q, real* out) override {
    const int64_t d = head_dim(), g = group();
    real* const work = work_.data() + first / unit() * room_.total;
    real *const queries = work + room_.queries, *const sums = work + room_.sums;
    scale_rows_to(q + first * d, unit() * d, logit_factor(d), queries);
    std::fill_n(sums, unit() / shared() * room_.block_stride, real(0));
    for (int64_t at = 0; at < unit(); at += g) read_rows((first + at) / g, at, work);
    auto* const places = reinterpret_cast<int32_t*>(work + room_.places);
    for (int64_t at = 0; at < unit(); at += together()) {
      if (at % shared() == 0)
        choose_by_weights(own(), sums + at / shared() * room_.block_stride, most(),
                          work + room_.list, places);
      const int64_t head = (first + at) / g;
      attend(head, together(), std::min(most(), own()), places, queries + at * d,
             work + room_.logits, work + room_.selected + at * d);
    }
    for (int64_t at = 0; at < unit(); at += g) {
      const GroupSums window = GroupSums::in(work + room_.logits + g * kPanel, g, d);
      add((first + at) / g, {length() + 1 - in_window(), length() + 1}, -1, queries + at * d,
          work + room_.logits, window);
      divide(window, out + (first + at) * d);
    }
    for (int64_t at = 0; at < unit(); ++at) {
      real factors[kBranches];
      sigmoid_row(kBranches, gates()[0].data() + (first + at) * kBranches, factors);
      const real* const selected = work + room_.selected + at * d;
      const real* const compressed = work + room_.compressed + at * d;
      real* const to = out + (first + at) * d;
      for (int64_t c = 0; c < d; ++c)
        to[c] = factors[0] * selected[c] + factors[1] * to[c] + factors[2] * compressed[c];
    }
  }

  // The compressed branch of a key head's queries, and what it adds to the scores of blocks.
  void read_rows(int64_t head, int64_t at, real* work) const {
    const int64_t d = head_dim(), g = group(), count = ended();
    real *const scores = work + room_.scores, *const out = work + room_.compressed + at * d;
    std::fill_n(out, g * d, real(0));
    if (count == 0) return;
    score(head, count, work + room_.queries + at * d, scores, room_.stride);
    count_flops(2 * static_cast<double>(g * count * d));  // of their values
    for (int64_t r = 0; r < g; ++r) {
      real* const row = scores + r * room_.stride;
      real* const sums = work + room_.sums + (at + r) / shared() * room_.block_stride;
      if (has_plain_scores()) std::copy_n(row, count, sums);
      RowSums found{.sum = out + r * d};
      real rescale = 1;
      add_keys(count, row, room_.stride, value_means(head), d,
               {1, found.sum, &found.row_max, &found.row_sum, &rescale});
      divide_row(d, found.sum, found.row_sum, found.sum);
      if (!has_plain_scores())
        add_block_scores(compressed(), block(), count, 1 / found.row_sum, row, own(), sums);
    }
  }

  void compress(int64_t head, bool are_values, const real* rows, real* to) const override {
    if (!keys_.defined()) return BlockDecoder::compress(head, are_values, rows, to);
    network_row(are_values ? values_ : keys_, rows,
                network_work_.data() + head * network_reals(keys_), to);
  }

  double unit_flops() const override {
    const bool compresses = keys_.defined() && ended() > compressed().ended(length());
    return 4 * static_cast<double>(unit() * head_dim() * (ended() + seen_next() + in_window())) +
           (compresses ? static_cast<double>(unit() / group()) * 2 * network_row_flops(keys_) : 0);
  }
  double unit_numbers() const override {
    return 2 * static_cast<double>(head_dim() * (unit() / group() * (ended() + in_window()) +
                                                 unit() / together() * seen_next()));
  }

  int64_t window_;
  BlockNetwork keys_, values_;
  Tensor network_work_;  // [heads, network_reals()]
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
  const int64_t rows = o.rows(s.kv_len);
  const double compressed = heads * d * compressed_pairs(grid, o.compressed);
  const double network =
      o.keys.defined() ? 2 * network_flops(o.compressed, o.keys, grid.heads(), s.kv_len) : 0;
  const auto lists = static_cast<double>(BlockQueries::bytes(grid, o.most)),
             chosen = static_cast<double>(ChosenBlocks::bytes(grid, o.most));
  const double means = size * 2 * heads * d * static_cast<double>(rows);
  const double first =
      std::max(compressed_bytes(grid, o.compressed, rows, o.shared, o.most) + means, lists);
  return {.flops = 4 * compressed + blocks.flops + window.flops + network,
          .backward_flops =
              10 * compressed + blocks.backward_flops + window.backward_flops + 2 * network,
          .bytes = 8 * out + lists + size * kBranches * heads * static_cast<double>(s.q_len),
          .peak_bytes = std::max({out + chosen + first, out + lists + blocks.peak_bytes,
                                  2 * out + window.peak_bytes, 4 * out}),
          .state_bytes = static_cast<double>(
              block_state_bytes(grid.heads(), s.kv_len, s.head_dim, o.compressed.stride, true))};
}

}  // namespace attn
