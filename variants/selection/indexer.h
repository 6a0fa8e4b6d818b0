// The lightning indexer: scores of keys by a few narrow heads, I(i, j) = Σ_c w(i, c)·relu(q(i, c)·
// k(j)) with q(i, c) = q_i·A_c, k(j) = LayerNorm(k_j·B), w(i) = 1 + q_i·C. DeepSeek-V3.2 2025,
// arXiv:2512.02556, eq. 1. 2·d·(heads·(dim + 1) + dim) FLOPs a position, and as many numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "variants/selection/top_attention.h"
#include "variants/selection/top_decoder.h"

namespace attn {

// What makes the rows that an indexer scores. One for all heads reads the queries and keys of all
// of them: q_i·A_c is then the sum over heads of their products with their parts of A, and so are
// k_j·B and q_i·C. Of an indexer of each head, B is one for all, so that query heads that share
// keys share the indexer's keys too.
class Indexer {
 public:
  Indexer() = default;  // no rows: queries and keys themselves are scored
  // query [attention_heads, d, heads·dim], weight [attention_heads, d, heads]; key [d, dim]: of
  // each attention head; [attention_heads, d, dim]: one for all.
  Indexer(const Tensor& query, const Tensor& key, const Tensor& weight);

  // For q [batch, attention_heads, q_len, d] and k [.., kv_len, d]; of k, rows from lengths[b] on
  // are not read.
  IndexScores scores(const Tensor& q, const Tensor& k, const std::vector<int64_t>& lengths) const;
  IndexRows rows() const;  // for a decoder; of an indexer of each head

  bool is_shared() const { return key_.defined() && key_.shape().rank() == 3; }
  int64_t heads() const { return weight_.defined() ? weight_.dim(2) : 0; }
  int64_t dim() const { return weight_.defined() ? key_.dim(-1) : 0; }
  double query_flops() const;  // of a position, of one choice
  double key_flops() const;

  // The rows of `rows` positions of one choice. q and k: of the head, or of the first head of the
  // sequence, whose others are q_apart and k_apart numbers away; `group` query heads share a head
  // of k.
  void make_query(int64_t head, int64_t rows, const real* q, int64_t q_apart, real* to,
                  real* weights) const;
  void make_key(int64_t rows, const real* k, int64_t k_apart, int64_t group, real* to) const;

 private:
  int64_t parts() const { return is_shared() ? key_.dim(0) : 1; }  // heads that are summed

  Tensor query_, key_, weight_;
  Tensor gain_, bias_;  // of the layer norm: ones and zeros
};

// Random projections of an indexer of `heads` heads of `dim`, for attention heads of d: those of
// queries are half the same as those of keys, so that their products grow with q·k, and w is
// near 1. Shapes as the constructor takes them. The random streams are named after `name`.
struct IndexStart {
  Tensor query, key, weight;

  IndexStart(const std::string& name, uint64_t seed, int64_t attention_heads, int64_t d,
             int64_t heads, int64_t dim, bool is_shared);
};

// Of attention to the keys that an indexer chooses, q_len = kv_len.
Cost indexed_cost(const AttentionShape& shape, int64_t keep, const Indexer& indexer);

}  // namespace attn
