// See shared_choice_decoder.h. Parallel over sequences.
#include "variants/selection/shared_choice_decoder.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/workspace.h"
#include "core/simd/listed_rows.h"
#include "core/simd/rows.h"
#include "variants/selection/key_chooser.h"
#include "variants/selection/top_attention.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

class SharedChoiceDecoder final : public Decoder {
 public:
  SharedChoiceDecoder(const Shape& position, int64_t capacity, int64_t keep, const Indexer& indexer)
      : Decoder(position, capacity),
        batch_(position[0]),
        keep_(std::min(keep, capacity)),
        chooser_(batch_, capacity, keep_, indexer),
        keys_({heads(), capacity, head_dim()}),
        values_(keys_.shape()),
        room_(*this),
        work_({batch_, room_.total}) {}

 private:
  struct Room {  // of one sequence's step: offsets into its workspace
    int64_t logits, places, total;
    explicit Room(const SharedChoiceDecoder& of) {
      WorkspaceParts parts;
      logits = parts.take(of.keep_);
      places = parts.take(of.keep_);
      total = parts.total();
    }
  };
  int64_t kv_heads() const { return heads() / batch_; }
  real* work_of(int64_t b) const { return work_.data() + b * room_.total; }

  // k, v: of the first head of sequence b, those of the others `apart` numbers away.
  void put(int64_t b, int64_t at, const real* k, const real* v, int64_t apart) const {
    chooser_.put(b, at, k, apart, group());
    for (int64_t h = 0; h < kv_heads(); ++h) {
      const int64_t row = ((b * kv_heads() + h) * capacity() + at) * head_dim();
      std::copy_n(k + h * apart, head_dim(), keys_.data() + row);
      std::copy_n(v + h * apart, head_dim(), values_.data() + row);
    }
  }

  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), apart = len * head_dim();
    over_range(batch_, kv_heads() * apart, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t i = 0; i < len; ++i) {
          const int64_t from = b * kv_heads() * apart + i * head_dim();
          put(b, length() + i, k.data() + from, v.data() + from, apart);
        }
    });
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), kept = kv_heads() * dim, all = group() * kept;
    over_range(batch_, all * length(), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        put(b, length(), k + b * kept, v + b * kept, dim);
        answer(b, q + b * all, out + b * all);
      }
      const auto count = static_cast<double>(end - begin);
      count_flops(count * sequence_flops());
      count_bytes(static_cast<double>(sizeof(real)) * count * sequence_numbers());
    });
  }

  // q, out [kv_heads, group, dim]
  void answer(int64_t b, const real* q, real* out) {
    real* const work = work_of(b);
    auto* const places = reinterpret_cast<int32_t*>(work + room_.places);
    real* const logits = work + room_.logits;
    const int64_t dim = head_dim(), count = chooser_.choose(b, length() + 1, q, dim, places);
    const real scale = static_cast<real>(1 / std::sqrt(static_cast<double>(dim)));
    for (int64_t h = 0; h < kv_heads() * group(); ++h) {
      const int64_t rows = (b * kv_heads() + h / group()) * capacity() * dim;
      const ListedRows listed{count, dim, places, true};
      dots_with_rows(listed, q + h * dim, keys_.data() + rows, logits);
      listed_softmax(count, scale, logits);
      weighted_rows(listed, logits, values_.data() + rows, out + h * dim);
    }
  }

  double kept_next() const { return static_cast<double>(std::min(keep_, length() + 1)); }
  double query_numbers() const {  // of a position: of all query heads
    return static_cast<double>(kv_heads() * group() * head_dim());
  }
  double sequence_flops() const {
    const auto scored =
        static_cast<double>(chooser_.indexer().heads() * chooser_.indexer().dim() * (length() + 1));
    return chooser_.indexer().key_flops() + chooser_.indexer().query_flops() + 2 * scored +
           4 * query_numbers() * kept_next();
  }
  double sequence_numbers() const {  // that are read, and the position that is written
    return static_cast<double>(chooser_.indexer().dim() * (length() + 2) +
                               2 * kv_heads() * head_dim()) +
           2 * query_numbers() * kept_next();
  }
  int64_t do_state_bytes() const override {
    return chooser_.bytes() + 2 * keys_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override { return static_cast<double>(batch_) * sequence_flops(); }
  double do_step_bytes() const override {
    return static_cast<double>(sizeof(real)) * static_cast<double>(batch_) * sequence_numbers();
  }

  int64_t batch_, keep_;
  KeyChooser chooser_;
  Tensor keys_, values_;  // [heads, capacity, head_dim]
  Room room_;
  Tensor work_;  // [batch, room]
};

}  // namespace

std::unique_ptr<Decoder> shared_choice_decoder(const Shape& position, int64_t capacity,
                                               int64_t keep, const Indexer& indexer) {
  return std::make_unique<SharedChoiceDecoder>(position, capacity, keep, indexer);
}

}  // namespace attn
