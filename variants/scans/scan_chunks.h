// The positions of a scan in chunks: the forward keeps the state before each chunk, and the
// backward computes the states within a chunk again, from the last chunk to the first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/marks.h"
#include "core/tensor/tensor.h"

namespace attn {

struct ScanProblem {
  // Positions from one kept state to the next. 32·16 states of a vector of channels and their
  // factors are 32 KB, within a first-level or second-level cache.
  static constexpr int64_t kChunk = 32;

  int64_t batch = 1, heads = 1, len = 1, dim = 1, states = 1;
  int64_t state_reals = 1;            // of a head
  std::vector<int64_t> lengths = {};  // valid positions of each batch entry; empty: all

  int64_t total_heads() const { return batch * heads; }
  int64_t chunks() const { return (len + kChunk - 1) / kChunk; }
  int64_t valid(int64_t head) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(head / heads)];
  }
};

// Calls scan(first, count, state) for each chunk of a head. Keeps the states in `kept` [heads,
// chunks, state_reals], if defined. `state` is zeroed first.
template <class Scan>
void over_chunks(const ScanProblem& p, int64_t head, real* state, const Tensor& kept,
                 const Scan& scan) {
  const Mark mark(Part::recurrence);
  std::fill_n(state, p.state_reals, real(0));
  for (int64_t first = 0; first < p.valid(head); first += ScanProblem::kChunk) {
    if (kept.defined())
      std::copy_n(state, p.state_reals,
                  kept.data() + (head * p.chunks() + first / ScanProblem::kChunk) * p.state_reals);
    scan(first, std::min(ScanProblem::kChunk, p.valid(head) - first));
  }
}

// Calls scan(first, count, state) from the last chunk to the first, with the kept state.
template <class Scan>
void over_chunks_back(const ScanProblem& p, int64_t head, const Tensor& kept, const Scan& scan) {
  const Mark mark(Part::recurrence);
  const int64_t chunks = (p.valid(head) + ScanProblem::kChunk - 1) / ScanProblem::kChunk;
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
    const int64_t first = chunk * ScanProblem::kChunk;
    scan(first, std::min(ScanProblem::kChunk, p.valid(head) - first),
         kept.data() + (head * p.chunks() + chunk) * p.state_reals);
  }
}

}  // namespace attn
