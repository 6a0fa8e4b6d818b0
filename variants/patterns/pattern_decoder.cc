// Attention of the queries of a group to some slots of the KV cache, by online softmax over 64
// slots at a time; see pattern_decoder.h. Bound by reading the slots. Parallel over batch × heads.
#include "variants/patterns/pattern_decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

constexpr int64_t kBlock = 64;  // slots at a time: their values stay in L1

class PatternDecoder final : public Decoder {
 public:
  PatternDecoder(const Shape& position, int64_t capacity, CacheLayout layout)
      : Decoder(position, capacity),
        layout_(std::move(layout)),
        keys_({heads(), layout_.slots, head_dim()}),
        values_({heads(), layout_.slots, head_dim()}),
        work_({heads(), Room::reals(group(), head_dim())}) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    for (int64_t i = 0; i < len; ++i)
      for (int64_t head = 0; head < heads(); ++head) {
        const int64_t from = (head * len + i) * dim;
        put(head, layout_.slot_of(length() + i), k.data() + from, v.data() + from);
      }
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), rows = group(), slot = layout_.slot_of(length());
    const Seen seen = seen_next();
    over_range(heads(), 4 * dim * seen.pairs / heads(), [&](int64_t begin, int64_t end) {
      Tally done;
      for (int64_t head = begin; head < end; ++head) {
        put(head, slot, k + head * dim, v + head * dim);
        done.moved<real>(2 * dim);
      }
      for (const Run& run : seen.runs) {
        if (run.head < begin || run.head >= end) continue;
        const int64_t first = (run.head * rows + run.queries.begin) * dim;
        answer(run.head, run.queries.end - run.queries.begin, seen.lists[run.list], q + first,
               out + first, done);
      }
    });
  }

  void put(int64_t head, int64_t slot, const real* k, const real* v) const {
    const int64_t at = (head * layout_.slots + slot) * head_dim();
    std::copy_n(k, head_dim(), keys_.data() + at);
    std::copy_n(v, head_dim(), values_.data() + at);
  }

  // Of `rows` queries, in a head's part of work_.
  struct Room {
    int64_t rows;
    real *logits, *products, *queries;  // [rows, kBlock], [kBlock, rows], [dim, rows]
    real* sums;

    Room(real* work, int64_t count, int64_t dim)
        : rows(count),
          logits(work),
          products(logits + rows * kBlock),
          queries(products + rows * kBlock),
          sums(queries + padded_reals(rows * dim)) {}
    static int64_t reals(int64_t rows, int64_t dim) {
      return 2 * rows * kBlock + padded_reals(rows * dim) + GroupSums::reals(rows, dim);
    }
  };

  void answer(int64_t head, int64_t rows, const std::vector<Slots>& slots, const real* q, real* out,
              Tally& done) const {
    const int64_t dim = head_dim();
    const real scale = static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
    const Room room(work_.data() + head * work_.dim(1), rows, dim);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < dim; ++c) room.queries[c * rows + r] = scale * q[r * dim + c];
    const GroupSums sums = GroupSums::in(room.sums, rows, dim);
    for (const Slots& some : slots)
      for (int64_t first = 0; first < some.count(); first += kBlock) {
        const int64_t count = std::min(kBlock, some.count() - first), row = some.step * dim;
        const int64_t at = (head * layout_.slots + some.begin) * dim + first * row;
        score({keys_.data() + at, row}, count, room);
        weigh_keys(count, room.logits, kBlock, sums);
        add_product(rows, dim, count, {room.logits, kBlock}, {values_.data() + at, row}, sums.sum,
                    dim, sums.rescale);
        done.multiply_adds(2 * rows * count * dim);
        done.moved<real>(2 * count * dim);
      }
    for (int64_t r = 0; r < rows; ++r)
      divide_row(dim, sums.sum + r * dim, sums.row_sum[r], out + r * dim);
  }

  // One query alone would leave a tile of the product empty.
  void score(Left keys, int64_t count, const Room& room) const {
    const int64_t dim = head_dim(), rows = room.rows;
    if (rows == 1) {
      dots_of_rows(count, dim, room.queries, 0, keys.data, keys.row, room.logits);
      return;
    }
    product(count, rows, dim, keys, {room.queries, rows}, room.products, rows);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < count; ++j) room.logits[r * kBlock + j] = room.products[j * rows + r];
  }

  // Neighbouring queries of a head's group that see the same slots.
  struct Run {
    int64_t head;
    Span queries;
    size_t list;
  };
  struct Seen {
    std::vector<std::vector<Slots>> lists;
    std::vector<Run> runs;
    int64_t pairs = 0, slots = 0;  // of queries and slots, and of slots read, over all heads
  };
  Seen seen_next() const {
    Seen seen;
    for (int64_t head = 0; head < heads(); ++head)
      for (int64_t r = 0; r < group(); ++r) {
        if (layout_.by_head || seen.lists.empty()) {
          std::vector<Slots> slots = layout_.visible_slots(head * group() + r, length());
          if (seen.lists.empty() || slots != seen.lists.back())
            seen.lists.push_back(std::move(slots));
        }
        const size_t list = seen.lists.size() - 1;
        if (r > 0 && seen.runs.back().list == list)
          ++seen.runs.back().queries.end;
        else
          seen.runs.push_back({head, {r, r + 1}, list});
      }
    for (const Run& run : seen.runs)
      for (const Slots& some : seen.lists[run.list]) {
        seen.pairs += run.queries.size() * some.count();
        seen.slots += some.count();
      }
    return seen;
  }
  double flops_of(const Seen& seen) const {
    return 4 * static_cast<double>(seen.pairs * head_dim());
  }
  double bytes_of(const Seen& seen) const {  // the slots seen, and the one written
    return 2 * static_cast<double>(sizeof(real)) *
           static_cast<double>((seen.slots + heads()) * head_dim());
  }

  int64_t do_state_bytes() const override {
    return 2 * keys_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override { return flops_of(seen_next()); }
  double do_step_bytes() const override { return bytes_of(seen_next()); }

  CacheLayout layout_;
  Tensor keys_, values_;  // [heads, slots, dim]
  Tensor work_;           // of a step, for each head
};

}  // namespace

std::unique_ptr<Decoder> pattern_decoder(const Shape& position, int64_t capacity,
                                         CacheLayout layout) {
  return std::make_unique<PatternDecoder>(position, capacity, std::move(layout));
}

std::vector<Slots> ring_slots(Span positions, int64_t slots) {
  if (positions.begin >= positions.end) return {};
  const int64_t begin = positions.begin % slots, end = (positions.end - 1) % slots + 1;
  if (begin < end) return {{begin, end}};
  return {{begin, slots}, {0, end}};
}

}  // namespace attn
