// Ops that set elements to zero: at random (dropout, Srivastava et al. 2014) or beyond a length.
// One pass in each direction. Elements are selected, never multiplied by zero, so that NaN cannot
// spread.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/autograd/tape.h"
#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

Tensor reuse_or_new(const Tensor& g) { return g.unshared() ? g : Tensor(g.shape()); }

}  // namespace

Var dropout(const Var& a, double probability, Rng& rng) {
  ATTN_CHECK(probability >= 0 && probability < 1, "dropout probability {} is not in [0, 1)",
             probability);
  if (probability == 0) return a;
  const Tensor& x = a.value();
  const int64_t size = (x.size() + 3) / 4 * 4;
  const real factor = static_cast<real>(1 / (1 - probability));
  const auto limit =
      static_cast<uint32_t>(std::lround(probability * 65536));  // four decisions a draw
  const auto kept = std::allocate_shared<Block>(Recycled<Block>(), static_cast<size_t>(size),
                                                MemoryScope::current());  // a byte each
  auto* const keep = static_cast<uint8_t*>(kept->data());
  uint16_t draws[1024];
  Rng local = rng;  // its state in registers
  for (int64_t i = 0; i < size; i += 1024) {
    const int64_t n = std::min<int64_t>(1024, size - i);
    for (int64_t j = 0; j < n; j += 4) {
      const uint64_t bits = local.bits();
      std::memcpy(draws + j, &bits, sizeof bits);
    }
    for (int64_t j = 0; j < n; j++) keep[i + j] = draws[j] >= limit;
  }
  rng = local;
  const auto apply = [kept, factor](const Tensor& from, Tensor to) {
    const auto* mask = static_cast<const uint8_t*>(kept->data());
    const real* v = from.data();
    real* out = to.data();
    over_range(from.size(), 1, [=](int64_t begin, int64_t end) {
      ATTN_INDEPENDENT
      for (int64_t i = begin; i < end; i++) out[i] = mask[i] ? v[i] * factor : real(0);
    });
    return to;
  };
  return record_op(apply(x, Tensor(x.shape())), {&a, 1}, [apply](Tensor g, std::span<GradSlot> in) {
    in[0].give(apply(g, reuse_or_new(g)));
  });
}

Var zero_padding(const Var& a, std::span<const int64_t> lengths) {
  if (lengths.empty()) return a;
  const Shape shape = a.shape();
  ATTN_CHECK(shape.rank() >= 3 && static_cast<int64_t>(lengths.size()) == shape[0],
             "zero_padding: {} lengths for shape {}", lengths.size(), shape.str());
  for (const int64_t length : lengths)
    ATTN_CHECK(length >= 0 && length <= shape[-2], "zero_padding: length {} of {}", length,
               shape[-2]);
  const auto apply = [shape, bounds = std::vector<int64_t, Recycled<int64_t>>(
                                 lengths.begin(), lengths.end())](const Tensor& from, Tensor to) {
    const int64_t size = shape[-2] * shape[-1], all = size == 0 ? 0 : shape.size() / size;
    const int64_t each = all / std::max<int64_t>(1, shape[0]);  // of a batch entry
    over_range(all, size, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const real* source = from.data() + i * size;
        real* out = to.data() + i * size;
        const int64_t valid = bounds[static_cast<size_t>(i / each)] * shape[-1];
        if (out != source) std::copy(source, source + valid, out);
        std::fill(out + valid, out + size, real(0));
      }
    });
    return to;
  };
  return record_op(
      apply(a.value(), Tensor(shape)), {&a, 1},
      [apply](Tensor g, std::span<GradSlot> in) { in[0].give(apply(g, reuse_or_new(g))); });
}

}  // namespace attn
