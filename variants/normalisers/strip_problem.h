// The sizes of an attention in strips, the division of its queries, and what forward and backward
// do alike: packed keys, scaled queries, logits. Private to the engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/base/memory.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/tensor/tensor.h"
#include "variants/normalisers/strip_attention.h"

namespace attn {

struct StripProblem {
  // Keys of a product, and of a strip where each weight depends on its own logit alone.
  static constexpr int64_t kPiece = 384;
  // Queries of a strip: fewer where strips of all keys would not stay in the cache.
  static constexpr int64_t kMostRows = 48, kLeastRows = kTileRows;

  int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0, dim = 0, value_dim = 0;
  bool causal = false;
  std::vector<int64_t> kv_lengths = {};
  const RowWeights* rule = nullptr;

  int64_t maps() const { return rule->group * rule->parts; }
  int64_t depth() const { return dim / rule->parts; }  // of a dot product
  int64_t units() const { return batch * heads / rule->group; }
  int64_t first_head(int64_t unit) const { return unit * rule->group; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(depth())); }
  // Valid keys of head h, counted over all batch entries.
  int64_t length(int64_t h) const {
    return kv_lengths.empty() ? kv_len : kv_lengths[static_cast<size_t>(h / heads)];
  }
  int64_t seen(int64_t h, int64_t i) const {  // keys of query i
    return causal ? std::clamp<int64_t>(i + kv_len - q_len + 1, 0, length(h)) : length(h);
  }
  int64_t span() const { return rule->by_pair ? kPiece : std::max<int64_t>(1, kv_len); }
};

// The strips of a pass, and offsets into a worker's workspace.
struct StripLayout {
  int64_t rows = 0, strips = 0, stride = 0;
  int64_t map = 0;  // numbers of a map
  int64_t query = 0, room = 0, logits = 0, kept = 0, grads = 0, grad_query = 0, total = 0;

  StripLayout(const StripProblem& p, bool backward) {
    // Rows whose stride is a power of two would compete for the same lines of the cache.
    const int64_t cols = (std::min(p.span(), std::max<int64_t>(1, p.kv_len)) + kPanel - 1);
    stride = cols / kPanel * kPanel + 16;
    const int64_t maps = p.maps() * (backward ? 2 : 1) + (backward ? p.rule->kept : 0);
    const auto fit = [&](int64_t bytes) {
      const int64_t most = bytes / static_cast<int64_t>(sizeof(real)) / (maps * stride);
      return most / StripProblem::kLeastRows * StripProblem::kLeastRows;
    };
    rows = std::clamp(std::max(fit(kBytes), std::min(fit(kMostBytes), kEnoughRows)),
                      StripProblem::kLeastRows, StripProblem::kMostRows);
    strips = (p.q_len + rows - 1) / rows;
    const int64_t most = std::min(rows, std::max<int64_t>(1, p.q_len));
    map = most * stride;
    room = query + padded_reals(p.maps() * most * p.depth());
    logits = room + padded_reals(p.rule->room_reals(stride));
    kept = logits + padded_reals(p.maps() * map);
    grads = kept + (backward ? padded_reals(p.rule->kept * map) : 0);
    grad_query = grads + (backward ? padded_reals(p.maps() * map) : 0);
    total = grad_query + (backward ? padded_reals(p.maps() * most * p.depth()) : 0);
  }
  // Strips alternately from both ends, so that equal shares of a causal head take the same time.
  int64_t begin(int64_t strip) const {
    return (strip % 2 ? strips - 1 - strip / 2 : strip / 2) * rows;
  }

 private:
  static constexpr int64_t kBytes = 1 << 20;  // of the maps of a strip, in the second-level cache
  // The third-level cache holds the maps of many heads: a strip of few queries reads all keys and
  // adds to all their gradients for little work (talking_heads: a tenth of a training).
  static constexpr int64_t kMostBytes = 16 << 20, kEnoughRows = 24;
};

// Pairs of queries and keys that the passes multiply: whole strips.
double strip_pairs(const StripProblem& p, int64_t rows);

// All keys, or values, of each head and part as right operands of products: [heads·parts, panels].
class PackedRows {
 public:
  PackedRows(const StripProblem& p, const Tensor& x, int64_t parts);
  static int64_t reals(const StripProblem& p, int64_t dim, int64_t parts);  // of all heads
  // From row `first` on, a multiple of kPanel.
  Right from(int64_t head, int64_t part, int64_t first) const {
    return packed(packed_.data() + (head * parts_ + part) * each_ + first * depth_, depth_);
  }

 private:
  int64_t parts_, depth_, each_;
  Tensor packed_;
};

// A strip of queries of a unit, at work.
struct StripAt {
  int64_t unit, begin, end;  // queries
  int64_t last;              // keys that the last query sees: the strip's
  real* work;
  int64_t rows() const { return end - begin; }
};

// What forward and backward share.
class StripPass {
 public:
  StripPass(const StripProblem& problem, bool backward, const Tensor& q, const Tensor& k,
            const Tensor& v)
      : p_(problem), layout_(problem, backward), q_(q), v_(v), keys_(problem, k, p_.rule->parts) {}

 protected:
  const real* value(int64_t h, int64_t j) const {
    return v_.data() + (h * p_.kv_len + j) * p_.value_dim;
  }
  // Writes the queries of all maps, scaled, [maps, rows, depth].
  void take_queries(const StripAt& at) const;
  const real* queries(const StripAt& at, int64_t map) const {
    return at.work + layout_.query + map * at.rows() * p_.depth();
  }
  RowStrip strip(const StripAt& at, int64_t offset, int64_t maps, const int64_t* counts) const {
    return {maps, at.rows(), layout_.stride, counts, at.work + offset, at.work + layout_.room};
  }
  // The logits of `cols` keys from `first` on.
  void make_logits(const StripAt& at, int64_t first, int64_t cols, const RowStrip& x) const;
  void count_keys(const StripAt& at, int64_t first, int64_t cols, int64_t* counts) const;
  // Zeros in the columns [count, cols) of each step-th map.
  static void hide(const RowStrip& x, int64_t cols, int64_t step);
  template <class Visit>
  static void visit_pieces(int64_t cols, const Visit& visit) {
    for (int64_t c = 0; c < cols; c += StripProblem::kPiece)
      visit(c, std::min(StripProblem::kPiece, cols - c));
  }

  const StripProblem& p_;
  StripLayout layout_;
  const Tensor &q_, &v_;
  PackedRows keys_;
};

// Adds the gradients of q, k and v to grads[0..2] and those of learned numbers to grads[3].
void strip_backward(const StripProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Tensor& grad_out, std::span<Tensor> grads);

}  // namespace attn
