// See level_decoder.h. Before position t, whose lowest binary one is digit c, the blocks of levels
// 0 to c become the block of level c + 1. States are not decayed in place: the logarithm of what is
// left of each is kept beside it, so that a step reads states and writes that of level 0 alone, and
// a step that is taken back and made again replaces the first.
#include "variants/chunked/level_decoder.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"
#include "core/simd/rows.h"
#include "variants/chunked/head_decoder.h"
#include "variants/chunked/level_attention.h"

namespace attn {
namespace {

class LevelDecoder final : public HeadDecoder {
 public:
  LevelDecoder(const Shape& position, int64_t capacity, const Var& a_log, int64_t levels)
      : HeadDecoder(position, capacity, {1, levels}),
        heads_(position[1]),
        rule_(LogDecay::of_steps(a_log)),
        levels_(levels_of(capacity)),
        states_(Tensor::zeros({heads(), levels_, head_dim() * head_dim()})),
        left_(std::make_unique<double[]>(static_cast<size_t>(heads() * levels_))),
        work_(static_cast<size_t>(heads() * work_reals()) * sizeof(real), Purpose::workspace) {}

 private:
  int64_t work_reals() const { return padded_reals(2 * head_dim() + gate_widths()[1]); }
  int64_t state_reals() const { return head_dim() * head_dim(); }

  void step_of(int64_t head, int64_t i, const real* q, const real* k, const real* v, real* out,
               Tally& done) const override {
    const int64_t t = length() + i;
    const int64_t dim = head_dim(), size = state_reals(), width = gate_widths()[1];
    real* const states = states_.data() + head * levels_ * size;
    double* const left = left_.get() + head * levels_;
    real* const work = static_cast<real*>(work_.data()) + head * work_reals();
    real *const value = work, *const query = work + dim, *const weights = work + 2 * dim;
    const auto gate = [&](size_t g, int64_t numbers) {
      return gates()[g].data() + (head * gates()[g].dim(2) + i) * numbers;
    };
    real decay = 0, step = 0;
    HeadDecay(rule_, head % heads_).values(1, gate(0, 1), &decay);
    softplus_row(1, gate(0, 1), 1, 1, &step);
    softplus_row(width, gate(1, width), 1, 1, weights);
    if (t > settled_ && t > 0) merge(std::countr_zero(static_cast<uint64_t>(t)), states, left);
    left[0] = static_cast<double>(decay);
    for (int64_t c = 0; c < dim; ++c) value[c] = step * v[c];
    product(dim, dim, 1, {k, 1}, {value, dim}, states, dim);
    done.multiply_adds(size);
    done.moved<real>(size);
    if (!q) return;
    std::fill_n(out, dim, real(0));
    for (int64_t level = 0; level < levels_; ++level) {
      if (level > 0 && !(t >> (level - 1) & 1)) continue;
      const double kept = level > 0 ? std::exp(left[level] + left[0]) : 1;
      const real by = weights[level] * static_cast<real>(kept);
      for (int64_t c = 0; c < dim; ++c) query[c] = by * q[c];
      add_product(1, dim, dim, {query, dim}, {states + level * size, dim}, out, dim);
      done.multiply_adds(size);
      done.moved<real>(size);
    }
  }

  // The position before has passed: its decay meets the levels above 0, and levels 0 to `last`
  // become level last + 1.
  void merge(int64_t last, real* states, double* left) const {
    const int64_t size = state_reals();
    for (int64_t level = 1; level < levels_; ++level) left[level] += left[0];
    real* const to = states + (last + 1) * size;
    std::copy_n(states, size, to);
    left[last + 1] = 0;
    for (int64_t level = 1; level <= last; ++level) {
      const real by = static_cast<real>(std::exp(left[level]));
      const real* const from = states + level * size;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < size; ++c) to[c] += by * from[c];
    }
  }
  static int64_t read_levels(int64_t t) { return 1 + std::popcount(static_cast<uint64_t>(t)); }

  void do_extend(const Tensor& k, const Tensor& v) override {
    HeadDecoder::do_extend(k, v);
    settled_ = std::max(settled_, length() + k.dim(2) - 1);
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    HeadDecoder::do_step(q, k, v, out);
    settled_ = length();
  }
  int64_t do_state_bytes() const override {
    return level_state_bytes(heads(), levels_, head_dim(), head_dim());
  }
  double do_step_flops() const override {
    return 2 * static_cast<double>(heads() * state_reals() * (1 + read_levels(length())));
  }
  double do_step_bytes() const override {
    return sizeof(real) *
           static_cast<double>(heads() * state_reals() * (1 + read_levels(length())));
  }

  int64_t heads_;  // of one sequence
  LogDecay rule_;
  int64_t levels_;
  int64_t settled_ = -1;  // the last position whose predecessor has passed
  Tensor states_;         // [heads, levels, m·d]
  // The logarithm of what is left of each state [heads, levels]; of level 0, the last decay.
  std::unique_ptr<double[]> left_;
  Block work_;
};

}  // namespace

std::unique_ptr<Decoder> level_decoder(const Shape& position, int64_t capacity, const Var& a_log,
                                       int64_t levels) {
  if (position[2] > 1) return nullptr;
  return std::make_unique<LevelDecoder>(position, capacity, a_log, levels);
}

}  // namespace attn
