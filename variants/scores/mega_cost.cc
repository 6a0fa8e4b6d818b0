// The cost of mega_unit(), by the phases of its passes; see mega_unit.h.
#include <algorithm>

#include "core/simd/product.h"
#include "variants/scores/mega_unit.h"
#include "variants/scores/relu_attention.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

// Sequences of the attention: `count` chunks of each sequence, of which the last has `last` rows.
struct Chunks {
  int64_t batch, count, size, last;
  Chunks(const AttentionShape& s, int64_t chunk)
      : batch(s.batch),
        count(chunk > 0 && chunk < s.kv_len ? (s.kv_len + chunk - 1) / chunk : 1),
        size(count > 1 ? chunk : s.kv_len),
        last(s.kv_len - (count - 1) * size) {}
  bool whole() const { return last == size; }
  int64_t sequences() const { return batch * count; }
  int64_t rows() const { return sequences() * size; }
  std::vector<int64_t> lengths() const {
    std::vector<int64_t> lengths;
    for (int64_t i = 1; i <= sequences() && !whole(); ++i)
      lengths.push_back(i % count == 0 ? last : size);
    return lengths;
  }
};

struct Work {
  double flops, backward_flops, workspace_bytes;
};

Work attention_work(const Chunks& c, const MegaWeights& w, bool causal) {
  if (w.score == UnitScore::squared_relu) {
    const AttentionShape shape{c.sequences(), 1, c.size, c.size, w.narrow(), causal};
    const Cost cost = relu_cost(shape, w.units(), c.lengths());
    return {cost.flops, cost.backward_flops,
            cost.peak_bytes - sizeof(real) * static_cast<double>(c.rows() * w.units())};
  }
  SoftmaxProblem p{.batch = c.sequences(),
                   .heads = 1,
                   .q_len = c.size,
                   .kv_len = c.size,
                   .dim = w.narrow(),
                   .value_dim = w.units()};
  p.causal = causal;
  for (const int64_t length : c.lengths()) p.kv_lengths.push_back(length);
  const SoftmaxWork work = softmax_work(p);
  return {work.flops, work.backward_flops, work.workspace_bytes};
}

}  // namespace

Cost mega_cost(const AttentionShape& s, const MegaWeights& w) {
  const Chunks chunks(s, w.chunk);
  const Work attention = attention_work(chunks, w, s.causal);
  AttentionShape padded = s;
  padded.kv_len = chunks.count * chunks.size;
  const Cost average = average_cost(padded, w.states(), w.average.size() > 1);
  const double size = sizeof(real), rows = size * static_cast<double>(chunks.rows()),
               width = rows * static_cast<double>(w.width()),
               base = rows * static_cast<double>(w.narrow()),
               units = rows * static_cast<double>(w.units());
  const auto pack = [&](int64_t out, int64_t in) {
    return size * static_cast<double>(packed_reals(out, in));
  };
  Cost cost;
  const double products = 2 * static_cast<double>(chunks.rows() * w.reals());
  // Rows of padding are not averaged.
  const double valid = static_cast<double>(s.kv_len) / static_cast<double>(padded.kv_len);
  cost.flops = products + attention.flops + valid * average.flops;
  cost.backward_flops = 2 * products + attention.backward_flops + valid * average.backward_flops;
  // Each array that later products or the attention read is written once and read as often as they
  // do, with its elementwise functions in the same pass.
  cost.bytes =
      average.bytes + 7 * width + 4 * base + 4 * units + size * static_cast<double>(w.reals());
  cost.peak_bytes =
      (chunks.whole() ? 0 : width) +
      std::max({average.peak_bytes, 3 * width,
                // Beside e: what makes queries and keys, then values.
                width + std::max(base + pack(w.narrow(), w.width()), 4 * base),
                width + 2 * base + units + std::max(pack(w.units(), w.width()), units),
                width + 2 * base + 2 * units + attention.workspace_bytes,
                // Beside e: the gate, the output of the attention, the candidate.
                width + 2 * units + std::max(pack(w.units(), w.width()), units),
                2 * width + units + pack(w.width(), w.units()),
                3 * width + std::max(pack(w.width(), w.width()), width)});
  const int64_t cached = w.chunk > 0 ? std::min(w.chunk, s.kv_len) : s.kv_len;
  cost.state_bytes = size * static_cast<double>(s.batch * (4 * w.states() * w.width() +
                                                           cached * (w.narrow() + w.units())));
  return cost;
}

}  // namespace attn
