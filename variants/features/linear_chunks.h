// The state, chunks and key scales that the forward and the backward of linear attention share. A
// sequence is divided into chunks, and into pieces for threads. m: features, d: columns of v.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/base/workers.h"
#include "core/base/workspace.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "core/tensor/tensor.h"
#include "variants/features/normalizer.h"
#include "variants/features/row_features.h"

namespace attn {

// Sizes, mask and feature map. The state of a prefix of the keys is an array of state_reals()
// numbers: S = Σ_j exp(log_scale_j - M)·φ(k_j)ᵀv_j [m, d]; z = Σ_j exp(log_scale_j - M)·φ(k_j) [m];
// if the divisor is floored, its bound Σ_j exp(log_scale_j - M); and M, the maximum of their
// log_scale, -inf without keys.
struct LinearProblem {
  int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0;
  int64_t width = 0;  // columns of q and k, the input of the feature map
  int64_t features = 0, dim = 0;
  bool causal = false, scaled = false;  // scaled: keys have a log_scale
  bool gated = false;                   // scaled by gates, see key_gates.h
  std::vector<int64_t> kv_lengths = {};
  FeatureMap map = {};

  // Keys or queries of a chunk. Causal, a query costs chunk/2·(m + d) multiply-adds inside its
  // chunk; chunks of 64 were fastest for m = 64 and m = 256.
  int64_t chunk() const { return causal ? 64 : 128; }
  // Rows whose weights inside the chunk are computed at once.
  static constexpr int64_t kChunkStrip = 24;
  static int64_t chunks_of(int64_t len, int64_t size) { return (len + size - 1) / size; }
  int64_t key_chunks() const { return chunks_of(kv_len, chunk()); }
  int64_t row_chunks() const { return causal ? key_chunks() : chunks_of(q_len, chunk()); }

  bool floored() const { return map.divisor() == Divisor::floored; }
  bool given() const { return map.kind == FeatureMap::Kind::given; }
  // Row stride of features in the workspace. A stride of a multiple of 1 KiB would use few cache
  // sets.
  int64_t feature_row() const { return features % 256 == 0 ? features + 16 : features; }
  int64_t feature_reals() const { return given() ? 0 : chunk() * feature_row(); }
  int64_t sum_reals() const { return features * dim; }
  int64_t bound_at() const { return sum_reals() + features; }  // in a state, if floored
  int64_t state_reals() const { return bound_at() + floored() + 1; }
  int64_t total_heads() const { return batch * heads; }
  int64_t offset() const { return kv_len - q_len; }  // sequences are aligned at the end
  int64_t length(int64_t head) const {
    return kv_lengths.empty() ? kv_len : kv_lengths[static_cast<size_t>(head / heads)];
  }

  // Pieces of a sequence: more than 1 where heads are too few for the threads. Causal, pieces
  // compute each state twice.
  int64_t pieces() const {
    const int64_t workers = gated ? 1 : threads(), most = std::max(key_chunks(), row_chunks());
    const bool busy = causal ? total_heads() >= workers : total_heads() % workers == 0;
    return busy ? 1 : std::clamp<int64_t>(most, 1, workers);
  }
  // Parts of a head whose states a forward in pieces computes first. Causal, the last piece is not
  // needed, and the others are divided further to keep all threads busy.
  int64_t summed_parts(int64_t pieces) const { return causal ? pieces * (pieces - 1) : pieces; }
};

// The valid keys of a chunk and its queries. Causal, these are the queries whose last visible key,
// without padding, is in the chunk; otherwise the rows with the indices of the chunk.
struct Chunk {
  int64_t key = 0, keys = 0, row = 0, rows = 0;

  // The number of keys of the chunk that its row r sees.
  int64_t visible(const LinearProblem& p, int64_t r) const {
    return std::clamp<int64_t>(row + r + p.offset() + 1 - key, 0, keys);
  }
  // The first row of the chunk that sees its key j.
  int64_t first_row(const LinearProblem& p, int64_t j) const {
    return std::clamp<int64_t>(key + j - p.offset() - row, 0, rows);
  }
};

inline Chunk chunk_of(const LinearProblem& p, int64_t head, int64_t index) {
  const int64_t begin = index * p.chunk(), end = begin + p.chunk(),
                shift = p.causal ? p.offset() : 0;
  const int64_t key = std::min(begin, p.length(head)), key_end = std::min(end, p.length(head));
  const int64_t row = std::clamp<int64_t>(begin - shift, 0, p.q_len);
  const int64_t row_end = std::clamp<int64_t>(end - shift, 0, p.q_len);
  return {key, key_end - key, row, row_end - row};
}

// Calls body(index) for the chunks of one piece, in order.
template <class Body>
void for_chunks(int64_t chunks, int64_t piece, int64_t pieces, const Body& body) {
  for (int64_t c = chunks * piece / pieces; c < chunks * (piece + 1) / pieces; ++c) body(c);
}

// exp(from - to): the factor that converts a sum relative to `from` to one relative to `to`. The
// empty sum has from = -inf.
inline real scale_between(real from, real to) {
  if (from == -kInfinity) return 0;
  return from == to ? real(1) : std::exp(from - to);
}

// out[j] = exp(log_scale_j - running_max) for j in [begin, end); 1 if log_scale is null.
inline void relative_scales(const real* log_scale, real running_max, int64_t begin, int64_t end,
                            real* out) {
  if (!log_scale) return std::fill(out + begin, out + end, real(1));
  if (running_max == -kInfinity) return std::fill(out + begin, out + end, real(0));
  exp_row(end - begin, log_scale + begin, 1, running_max, out + begin);
}

// The running maximum M_i of log_scale over the visible keys of a chunk, and the scales of the keys
// relative to M_i, which are recomputed only when M_i rises. `before`: M of the keys before the
// chunk; `work` [keys].
class RunningScales {
 public:
  RunningScales(const real* log_scale, real before, real* work)
      : log_scale_(log_scale), running_max_(before), work_(work) {}
  real advance(int64_t visible) {  // to at least as many visible keys; returns M_i
    real running_max = visible > 0 && !log_scale_ ? real(0) : running_max_;
    if (log_scale_)
      for (int64_t j = seen_; j < visible; ++j)
        running_max = log_scale_[j] > running_max ? log_scale_[j] : running_max;
    if (log_scale_)
      relative_scales(log_scale_, running_max, running_max == running_max_ ? seen_ : 0, visible,
                      work_);
    seen_ = visible;
    return running_max_ = running_max;
  }
  // Multiplies row[j] by the scale of key j; sets it to 0 where key j is not visible.
  void apply(real* row, int64_t keys) const {
    if (log_scale_)
      for (int64_t j = 0; j < seen_; ++j) row[j] *= work_[j];
    std::fill(row + seen_, row + keys, real(0));
  }
  // Of keys with a log_scale: the sum of the scales of the visible ones; and out_j +=
  // factor·scale_j.
  real sum() const { return sum_in_row(work_, seen_); }
  void add_to(real* out, real factor) const {
    for (int64_t j = 0; j < seen_; ++j) out[j] += factor * work_[j];
  }

 private:
  const real* log_scale_;
  real running_max_;
  real* work_;
  int64_t seen_ = 0;
};

// Rows of features, in a workspace or in a tensor.
struct FeatureRows {
  const real* data = nullptr;
  int64_t row = 0;
  Left left(int64_t first = 0) const { return {data + first * row, row}; }
  Left transposed() const { return {data, 1, row}; }
  Right right() const { return {data, row}; }
};

// Rows of x: `at` counts over all heads, `position` among the keys.
struct RowsAt {
  int64_t at, position, rows;
};
inline RowsAt queries_at(const LinearProblem& p, int64_t head, const Chunk& chunk) {
  return {head * p.q_len + chunk.row, chunk.row + p.offset(), chunk.rows};
}
inline RowsAt keys_at(const LinearProblem& p, int64_t head, const Chunk& chunk) {
  return {head * p.kv_len + chunk.key, chunk.key, chunk.keys};
}

// The features of some rows of x.
inline FeatureRows make_rows(const LinearProblem& p, const RowFeatures& features, const Tensor& x,
                             const RowsAt& which, real* work, real* log_scale) {
  const real* const from = x.data() + which.at * p.width;
  if (p.given()) return {from, p.width};
  features.make(from, which.position, which.rows, work, p.feature_row(), log_scale);
  return {work, p.feature_row()};
}

inline void clear_state(const LinearProblem& p, real* state) {
  const Mark mark(Part::elementwise);
  std::fill_n(state, p.state_reals() - 1, real(0));
  state[p.state_reals() - 1] = -kInfinity;
}

// Raises M to the maximum over more keys, rescales the state, and returns M.
inline real raise_running_max(const LinearProblem& p, real* state, const real* log_scale,
                              int64_t keys) {
  const Mark mark(Part::normalisation);
  const int64_t numbers = p.state_reals() - 1;
  const real old = state[numbers];
  const real running_max = log_scale ? std::max(old, max_in_row(log_scale, keys)) : real(0);
  if (running_max == old) return running_max;
  if (old != -kInfinity) {
    const real factor = std::exp(old - running_max);
    for (int64_t i = 0; i < numbers; ++i) state[i] *= factor;
  }
  return state[numbers] = running_max;
}

inline void merge_states(const LinearProblem& p, const real* from, real* into) {
  const Mark mark(Part::normalisation);
  const int64_t numbers = p.state_reals() - 1;
  const real running_max = std::max(from[numbers], into[numbers]);
  const real ours = scale_between(into[numbers], running_max),
             theirs = scale_between(from[numbers], running_max);
  for (int64_t i = 0; i < numbers; ++i) into[i] = ours * into[i] + theirs * from[i];
  into[numbers] = running_max;
}

// A matrix [rows, dim] and a column [rows]: values and scales of keys, or what their gradients are
// made of. `bounds` [rows] are what the rows add to the bound, if the divisor is floored.
struct AugmentedRows {
  const real *matrix, *column, *bounds;
};

// S += φᵀ·matrix, z += φᵀ·column.
inline void add_to_state(const LinearProblem& p, const FeatureRows& phi, const AugmentedRows& add,
                         int64_t rows, real* state) {
  add_product(p.features, p.dim, rows, phi.transposed(), {add.matrix, p.dim}, state, p.dim);
  add_product(1, p.features, rows, {add.column, 0, 1}, phi.right(), state + p.sum_reals(),
              p.features);
  if (p.floored()) state[p.bound_at()] += sum_in_row(add.bounds, rows);
  count_flops(2 * static_cast<double>(rows * p.features * (p.dim + 1)));
}

inline void scale_rows_by(const real* x, const real* factors, int64_t rows, int64_t cols,
                          real* out) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) out[r * cols + c] = factors[r] * x[r * cols + c];
}

// The tensors that a forward saves for its backward.
struct LinearSaved {
  Tensor q, k, v, out;
  Tensor log_scale;  // [batch, heads, kv_len], if the problem is scaled
  // [batch·heads, q_len]: Σ_j w_ij exp(log_scale_j - M_i), or a floored_normalizer() of it
  Tensor normalizer;
  Tensor states;  // [batch·heads, state_reals], of all keys; not causal
  Tensor gate;    // [batch, heads, kv_len, 1], if the problem is gated
  Tensor shifts;  // [batch·heads, key_chunks]: what the gates add to M at the end of a chunk
};

int64_t linear_workspace(const LinearProblem& problem);  // of a forward: numbers for each worker
// Fills saved.out and, to keep what the backward reads, the other results in `saved`.
void linear_forward(const LinearProblem& problem, LinearSaved& saved, bool keep);
// grads of q, k, v, the gate, and the directions of queries and of keys.
void linear_backward(const LinearProblem& problem, const LinearSaved& saved, const Tensor& grad_out,
                     std::span<Tensor> grads);

}  // namespace attn
