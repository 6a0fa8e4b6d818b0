// Composed from ops, the moving average and tiled attention; see mega_unit.h. Temporaries end as
// soon as they are read: mega_cost.cc counts those that are alive together.
#include "variants/scores/mega_unit.h"

#include <algorithm>
#include <utility>

#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "variants/scores/gated_unit.h"
#include "variants/scores/relu_attention.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

// Sequences as chunks that see only themselves, each a sequence of its own with one head.
Var chunks_of(const Var& x, int64_t size) {
  return reshape(x, {x.dim(0) * x.dim(1) / size, 1, size, x.dim(2)});
}

Mask mask_of_chunks(const Mask& mask, int64_t batch, int64_t len, int64_t size) {
  Mask of_chunks{mask.causal, {}};
  if (mask.kv_lengths.empty()) return of_chunks;
  of_chunks.kv_lengths.reserve(static_cast<size_t>(batch * (len / size)));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t first = 0; first < len; first += size)
      of_chunks.kv_lengths.push_back(
          std::clamp<int64_t>(mask.kv_lengths[static_cast<size_t>(b)] - first, 0, size));
  return of_chunks;
}

// The values that each position attends to, [batch, len, units].
Var attend(const Var& x, const Var& e, const MegaWeights& w, const Mask& mask) {
  const int64_t batch = x.dim(0), len = x.dim(1), size = w.chunk > 0 ? std::min(w.chunk, len) : len;
  const Mask seen = mask_of_chunks(mask, batch, len, size);
  const MegaRows rows = mega_rows(x, e, w);
  const Var q = chunks_of(rows.q, size), k = chunks_of(rows.k, size), v = chunks_of(rows.v, size);
  const Var mixed =
      w.score == UnitScore::softmax
          ? softmax_attention(q, k, v, {.causal = seen.causal, .kv_lengths = seen.kv_lengths})
          : relu_attention(q, k, v, seen, ReluPower::squared);
  return reshape(mixed, {batch, len, w.units()});
}

// Of whole chunks, without padding.
Var unit(const Var& x, const MegaWeights& w, const Mask& mask) {
  const Var e = mega_gate_input(x, moving_average(x, w.average, mask.kv_lengths), w);
  return mega_answer(x, e, attend(x, e, w, mask), w);
}

Var with_zeros(const Var& x, int64_t missing) {
  const Var parts[] = {x, Var(Tensor::zeros(x.shape().with(1, missing)))};
  return concat(parts, 1);
}

}  // namespace

Var mega_gate_input(const Var& x, Var average, const MegaWeights& w) {
  average = add(average, multiply(x, w.skip));
  return silu(average);
}

MegaRows mega_rows(const Var& x, const Var& e, const MegaWeights& w) {
  MegaRows rows;
  {
    Var z = linear(e, w.base, w.base_bias);
    z = silu(z);
    rows.q = add(multiply(z, w.query_scale), w.query_shift);
    rows.k = add(multiply(z, w.key_scale), w.key_shift);
  }
  rows.v = linear(x, w.value, w.value_bias);
  rows.v = silu(rows.v);
  return rows;
}

Var mega_answer(const Var& x, const Var& e, Var mixed, const MegaWeights& w) {
  {
    Var reset = linear(e, w.reset, w.reset_bias);
    reset = silu(reset);
    mixed = multiply(reset, mixed);
  }
  Var candidate = linear(mixed, w.out, {});
  mixed = {};
  candidate = add(candidate, linear(e, w.candidate, w.candidate_bias));
  candidate = silu(candidate);
  candidate = subtract(candidate, x);
  Var update = linear(e, w.update, w.update_bias);
  update = sigmoid(update);
  candidate = multiply(update, candidate);
  return add(x, candidate);
}

Var mega_unit(const Var& given, const MegaWeights& w, const Mask& mask) {
  const Var x = zero_padding(given, mask.kv_lengths);
  const int64_t len = x.dim(1), over = w.chunk > 0 && w.chunk < len ? len % w.chunk : 0;
  if (over == 0) return zero_padding(unit(x, w, mask), mask.kv_lengths);
  Mask whole{mask.causal, mask.kv_lengths};  // chunks
  if (whole.kv_lengths.empty()) whole.kv_lengths.assign(static_cast<size_t>(x.dim(0)), len);
  const Var answer = unit(with_zeros(x, w.chunk - over), w, whole);
  return zero_padding(slice(answer, 1, 0, len), mask.kv_lengths);
}

}  // namespace attn
