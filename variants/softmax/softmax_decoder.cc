// Attention of the queries of a group to the KV cache, by online softmax over blocks; see
// softmax_decoder.h. Bound by reading the cache: keys are stored as [dim][64] panels, so that both
// products read memory in order. Parallel over batch × heads, and over parts of the cache where
// heads do not divide evenly among the threads.
#include "variants/softmax/softmax_decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/softmax/decode_bias.h"
#include "variants/softmax/decode_cache.h"
#include "variants/softmax/typed_cache.h"

namespace attn {
namespace {

constexpr int64_t kLeastPart = 2 * kDecodeBlock;  // positions worth a part of their own: some 4 µs

template <class Cache>
class SoftmaxDecoder : public Decoder {
 public:
  using Element = typename Cache::Element;
  using Kept = Cache;

  // What is added to the logits or to their sum.
  struct Extras {
    Tensor sinks = {};
    bool gates = false;
    Tensor distances = {};
  };

  SoftmaxDecoder(const Shape& position, int64_t capacity, Cache cache, const Extras& extras = {})
      : Decoder(position, capacity,
                extras.gates ? std::vector<int64_t>{1} : std::vector<int64_t>{}),
        slots_(cache.slots()),
        cache_(std::move(cache)),
        sinks_(extras.sinks),
        bias_(heads(), slots_.count, extras.gates, extras.distances) {}

 protected:
  void put_all(int64_t len, const Element* k, const Element* v);
  void answer(const Element* q, const Element* k, const Element* v, Element* out);

 private:
  int64_t do_state_bytes() const override { return cache_.bytes(heads()) + bias_.bytes(); }
  double do_step_flops() const override {
    return 4 * static_cast<double>(heads() * group() * head_dim() *
                                   std::min(length() + 1, slots_.count));
  }
  double do_step_bytes() const override {  // the cache read, one position of it written
    const int64_t positions = std::min(length() + 1, slots_.count);
    return static_cast<double>(heads()) *
               static_cast<double>(cache_.read_bytes(length(), 0, positions) +
                                   cache_.written_bytes() + bias_.gate_bytes() * (positions + 1)) +
           (sinks_.defined() ? sizeof(real) * static_cast<double>(heads() * group()) : 0);
  }

  // What a part of the cache of one head is worked on with.
  struct Part {
    real *queries, *logits;  // as the cache takes them; [group, kDecodeBlock]
    GroupSums found;
  };
  int64_t part_reals() const {
    return cache_.query_reals(group()) + group() * kDecodeBlock +
           GroupSums::reals(group(), head_dim());
  }
  Part begun(real* work, const Element* q) const;
  void attend(int64_t head, int64_t begin, int64_t end, const Part& part, Tally& done) const;
  void finish(int64_t head, const Part* parts, int64_t count, Element* out) const;

  HeldSlots slots_;  // as many as a query can see
  Cache cache_;
  Tensor sinks_;  // [heads of queries], or undefined
  DecodeBias bias_;
  std::vector<Part, Recycled<Part>> parts_;  // of the cache, of each head, in a step
};

template <class Cache>
void SoftmaxDecoder<Cache>::put_all(int64_t len, const Element* k, const Element* v) {
  const int64_t unseen = std::max<int64_t>(0, len - slots_.count);
  parallel_for(heads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head)
      for (int64_t i = 0; i < len; ++i) {
        if (bias_.is_gated()) bias_.put(head, length() + i, gates()[0][head * len + i]);
        if (i < unseen && length() + i >= slots_.first) continue;
        cache_.put(head, length() + i, k + (head * len + i) * head_dim(),
                   v + (head * len + i) * head_dim());
      }
  });
}

template <class Cache>
typename SoftmaxDecoder<Cache>::Part SoftmaxDecoder<Cache>::begun(real* work,
                                                                  const Element* q) const {
  cache_.take_queries(q, group(), work);
  real* const logits = work + cache_.query_reals(group());
  return {work, logits, GroupSums::in(logits + group() * kDecodeBlock, group(), head_dim())};
}

// Slots [begin, end), begin being a multiple of kDecodeBlock.
template <class Cache>
void SoftmaxDecoder<Cache>::attend(int64_t head, int64_t begin, int64_t end, const Part& part,
                                   Tally& done) const {
  for (int64_t slot = begin; slot < end; slot += kDecodeBlock) {
    const int64_t count = std::min(kDecodeBlock, end - slot);
    cache_.score(head, slot, count, group(), part.queries, part.logits);
    bias_.add(head, length(), slot, count, group(), part.logits);
    if (bias_.is_gated()) done.moved<double>(count);
    cache_.add(head, slot, count, part.logits, part.found);
    done.multiply_adds(2 * group() * count * head_dim());
    done.moved<char>(cache_.read_bytes(length(), slot, count));
  }
}

// The answers of one head's queries, out [group, dim], from all parts of its cache. A sink adds to
// the sum of weights alone.
template <class Cache>
void SoftmaxDecoder<Cache>::finish(int64_t head, const Part* parts, int64_t count,
                                   Element* out) const {
  const int64_t dim = head_dim();
  for (int64_t r = 0; r < group(); ++r) {
    RowSums all = parts[0].found.row(r, dim);
    for (int64_t p = 1; p < count; ++p) merge_row(dim, parts[p].found.row(r, dim), all);
    if (sinks_.defined())
      all.row_sum += std::exp2(sinks_[(head * group() + r) % sinks_.size()] *
                                   static_cast<real>(std::numbers::log2e) -
                               all.row_max);
    divide_row(dim, all.sum, all.row_sum, out + r * dim);
  }
}

template <class Cache>
void SoftmaxDecoder<Cache>::answer(const Element* q, const Element* k, const Element* v,
                                   Element* out) {
  const int64_t dim = head_dim(), count = std::min(length() + 1, slots_.count);
  // As few parts a head as give every thread the same number.
  const int64_t even = threads() / std::gcd<int64_t>(heads(), threads());
  const int64_t per_head = std::clamp<int64_t>(count / kLeastPart, 1, even);
  const int64_t blocks = (count + kDecodeBlock - 1) / kDecodeBlock, slot = slots_.slot_of(length());
  if (bias_.is_gated()) {
    for (int64_t head = 0; head < heads(); ++head) bias_.put(head, length(), gates()[0][head]);
    count_bytes(static_cast<double>(heads()) * sizeof(double));
  }
  cache_.answers(length());
  parts_.assign(static_cast<size_t>(heads() * per_head), {});
  const Block work(parts_.size() * static_cast<size_t>(part_reals()) * sizeof(real),
                   Purpose::workspace);
  over_range(heads() * per_head, group() * dim * count / per_head, [&](int64_t begin, int64_t end) {
    Tally done;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / per_head, index = task % per_head;
      const Part part = parts_[static_cast<size_t>(task)] =
          begun(static_cast<real*>(work.data()) + task * part_reals(), q + head * group() * dim);
      const int64_t from = blocks * index / per_head * kDecodeBlock;
      const int64_t to = std::min(count, blocks * (index + 1) / per_head * kDecodeBlock);
      if (from <= slot && slot < to) {
        cache_.put(head, length(), k + head * dim, v + head * dim);
        done.moved<char>(cache_.written_bytes());
      }
      attend(head, from, to, part, done);
    }
  });
  if (sinks_.defined()) count_bytes(static_cast<double>(heads() * group()) * sizeof(real));
  for (int64_t head = 0; head < heads(); ++head)
    finish(head, &parts_[static_cast<size_t>(head * per_head)], per_head,
           out + head * group() * dim);
}

template <class Cache>
class RealSteps final : public SoftmaxDecoder<Cache> {
 public:
  using SoftmaxDecoder<Cache>::SoftmaxDecoder;

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    this->put_all(k.dim(2), k.data(), v.data());
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    this->answer(q, k, v, out);
  }
};
using RealDecoder = RealSteps<RealCache>;
using TypedDecoder = RealSteps<TypedCache>;

class BFloat16Decoder final : public SoftmaxDecoder<BFloat16Cache> {
 public:
  using SoftmaxDecoder::SoftmaxDecoder;

 private:
  bool do_keeps_bfloat16() const override { return true; }
  void do_extend(const Tensor& k, const Tensor& v) override {
    do_bfloat16_extend(rounded(k), rounded(v));
  }
  void do_step(const real*, const real*, const real*, real*) override {
    throw_error("a decoder that keeps bfloat16 takes steps in bfloat16");
  }
  void do_bfloat16_extend(const BFloat16Tensor& k, const BFloat16Tensor& v) override {
    put_all(k.dim(2), k.data(), v.data());
  }
  void do_bfloat16_step(const BFloat16* q, const BFloat16* k, const BFloat16* v,
                        BFloat16* out) override {
    answer(q, k, v, out);
  }
};

// Of `window` positions before the own one and the `first` ones.
HeldSlots slots_of(int64_t capacity, int64_t window, int64_t first = 0) {
  const int64_t held = std::min(first, capacity);
  return {window < 0 ? capacity : held + std::min(window + 1, capacity - held), held};
}

template <class Made, class... Type>
std::unique_ptr<Decoder> made(const Shape& position, int64_t capacity, HeldSlots slots,
                              const typename Made::Extras& extras, Type... type) {
  typename Made::Kept cache(position[0] * position[1], slots, position[3], type...);
  return std::make_unique<Made>(position, capacity, std::move(cache), extras);
}

}  // namespace

std::unique_ptr<Decoder> softmax_decoder(const Shape& position, int64_t capacity, int64_t window,
                                         const Tensor& sinks) {
  return made<RealDecoder>(position, capacity, slots_of(capacity, window), {.sinks = sinks});
}

std::unique_ptr<Decoder> band_softmax_decoder(const Shape& position, int64_t capacity,
                                              int64_t window, int64_t first) {
  return made<RealDecoder>(position, capacity, slots_of(capacity, window, first), {});
}

std::unique_ptr<Decoder> distance_softmax_decoder(const Shape& position, int64_t capacity,
                                                  int64_t window, const Tensor& distances) {
  const HeldSlots slots = slots_of(capacity, window);
  ATTN_CHECK(distances.dim(1) >= slots.count, "a table of {} distances for {} positions",
             distances.dim(1), slots.count);
  return made<RealDecoder>(position, capacity, slots, {.distances = distances});
}

std::unique_ptr<Decoder> gated_softmax_decoder(const Shape& position, int64_t capacity) {
  return made<RealDecoder>(position, capacity, {capacity}, {.gates = true});
}

std::unique_ptr<Decoder> bfloat16_softmax_decoder(const Shape& position, int64_t capacity,
                                                  int64_t window) {
  return made<BFloat16Decoder>(position, capacity, slots_of(capacity, window), {});
}

std::unique_ptr<Decoder> typed_softmax_decoder(const Shape& position, int64_t capacity,
                                               CacheType cache,
                                               const TypedDecoderOptions& options) {
  return made<TypedDecoder>(position, capacity, slots_of(capacity, options.window),
                            {.sinks = options.sinks, .gates = options.gates}, cache);
}

int64_t typed_cache_bytes(CacheType cache, int64_t heads, int64_t positions, int64_t dim) {
  return TypedCache::bytes_of(cache, heads, positions, dim);
}

}  // namespace attn
