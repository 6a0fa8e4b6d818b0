// Decoding by attention to chosen blocks: a cache of keys and values, and the means of whole
// blocks, or other rows that stand for them. A step reads the means of t/block blocks, and
// block·most keys and values for each query, or for the queries of a group that choose together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor/tensor.h"
#include "variants/api/decoder.h"
#include "variants/selection/compressed_attention.h"
#include "variants/softmax/softmax.h"

namespace attn {

// What the decoders of block attention share. Tasks are units of query heads that share keys or a
// choice.
class BlockDecoder : public Decoder {
 protected:
  // `most` blocks beside the own one; `shared`: neighbouring query heads that choose together;
  // `has_value_means`: values have means too.
  // `compressed`: the blocks that are made one row each; of none, those of `block`, as means.
  BlockDecoder(const Shape& position, int64_t capacity, int64_t block, int64_t most, int64_t shared,
               bool has_value_means, std::vector<int64_t> gate_widths = {},
               const CompressedBlocks& compressed = {0, 0});

  int64_t block() const { return block_; }
  int64_t most() const { return most_; }
  int64_t shared() const { return shared_; }
  int64_t unit() const { return std::max(group(), shared_); }  // query heads of a task
  int64_t blocks() const { return (capacity() + block_ - 1) / block_; }
  int64_t own() const { return length() / block_; }  // of the next position
  const CompressedBlocks& compressed() const { return compressed_; }
  const real* value_means(int64_t head) const { return means_.values(head, 0); }

  // Scores of a key head's queries [group, dim] with the first `count` means; rows `stride` apart.
  void score(int64_t head, int64_t count, const real* q, real* scores, int64_t stride) const;
  // A row [head_dim] of the rows of a compressed block: by default their mean.
  virtual void compress(int64_t head, bool are_values, const real* rows, real* to) const;
  // Adds the keys of some positions, seen by some queries [sums.rows, head_dim] of a key head,
  // scaled by logit_factor(); `after`: what is read next, -1: nothing. Work: `logits` [sums.rows,
  // kPanel]. By products: the choice and large logits need the bits of the forward.
  void add(int64_t head, Span positions, int64_t after, const real* queries, real* logits,
           const GroupSums& sums) const;
  // The same for the own block, up to the next position, and the chosen blocks, which `rows`
  // queries see; out [rows, head_dim] = their mean. Work: attend_reals().
  void attend(int64_t head, int64_t rows, int64_t count, const int32_t* chosen, const real* queries,
              real* work, real* out) const;
  static int64_t attend_reals(int64_t rows, int64_t dim) {
    return rows * kPanel + GroupSums::reals(rows, dim);
  }
  void divide(const GroupSums& sums, real* out) const;  // out [rows, head_dim] = sums / row_sum
  int64_t seen_next() const {                           // keys that attend() reads for a query
    return length() % block_ + 1 + std::min(most_, own()) * block_;
  }

 private:
  // The answers of the query heads [first, first + unit) of all entries; keys are put already.
  virtual void answer(int64_t first, const real* q, real* out) = 0;
  virtual double unit_flops() const = 0;
  virtual double unit_numbers() const = 0;  // read and written, but for the new position

  void put(int64_t head, int64_t at, const real* k, const real* v) const;
  void do_extend(const Tensor& k, const Tensor& v) override;
  void do_step(const real* q, const real* k, const real* v, real* out) override;
  int64_t do_state_bytes() const override { return means_.bytes() + cache_.bytes(); }
  int64_t units() const { return heads() * group() / unit(); }
  double do_step_flops() const override { return static_cast<double>(units()) * unit_flops(); }
  double do_step_bytes() const override {
    return static_cast<double>(sizeof(real)) * (static_cast<double>(units()) * unit_numbers() +
                                                2 * static_cast<double>(heads() * head_dim()));
  }

  int64_t block_, most_, shared_;
  CompressedBlocks compressed_;
  PanelCache cache_;  // [heads, capacity]
  PanelCache means_;  // [heads, compressed blocks]: of keys, and of values or nothing
  Tensor ended_;      // [heads]: workspace: the means of a block that ends, and its keys
};

// Of moba. state_bytes: (2 + 1/block)·dim numbers a position and key head.
std::unique_ptr<Decoder> mean_choice_decoder(const Shape& position, int64_t capacity, int64_t block,
                                             int64_t most);

// `stride`: from a compressed block to the next.
inline int64_t block_state_bytes(int64_t heads, int64_t positions, int64_t dim, int64_t stride,
                                 bool has_value_means) {
  const int64_t blocks = (positions + stride - 1) / stride;
  return heads * dim * (2 * positions + blocks * (1 + has_value_means)) *
         static_cast<int64_t>(sizeof(real));
}

}  // namespace attn
