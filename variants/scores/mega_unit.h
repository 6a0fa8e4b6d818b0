// The gated attention of Mega: queries, keys and gates from moving averages of the input, values
// from the input itself. Ma et al. 2022, arXiv:2209.10655, section 3.3. Products cost
// 2·(base + 3·units + 2·width)·width FLOPs for each position, attention 2·(base + units) for each
// pair.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "variants/api/cost.h"
#include "variants/api/decoder.h"
#include "variants/api/mask.h"
#include "variants/scans/scans.h"
#include "variants/scores/unit_cache.h"

namespace attn {

struct MegaWeights {
  std::vector<AverageWeights> average;                 // one, or two where the future is visible
  Var skip;                                            // ω [width]
  Var base, base_bias;                                 // [width, base]
  Var query_scale, query_shift, key_scale, key_shift;  // [base]
  Var value, value_bias;                               // [width, units]
  Var reset, reset_bias;                               // [width, units]
  Var update, update_bias;                             // [width, width]
  Var candidate, candidate_bias, out;                  // [width, width], [units, width]
  UnitScore score = UnitScore::softmax;
  int64_t chunk = 0;  // positions that see each other; 0: all do

  int64_t width() const { return skip.dim(0); }
  int64_t states() const { return average[0].step.dim(0); }
  int64_t narrow() const { return base.dim(1); }
  int64_t units() const { return value.dim(1); }
  int64_t reals() const { return width() * (narrow() + 3 * units() + 2 * width()); }  // matrices
};

// The steps for rows of x [batch, len, width] and their averages e.
struct MegaRows {
  Var q, k, v;  // [batch, len, base or units]
};
// e = silu(average + ω⊙x)
Var mega_gate_input(const Var& x, Var average, const MegaWeights& weights);
MegaRows mega_rows(const Var& x, const Var& e, const MegaWeights& weights);
// `mixed` [batch, len, units]: the values that each position attends to.
Var mega_answer(const Var& x, const Var& e, Var mixed, const MegaWeights& weights);

// x [batch, len, width] -> the same shape; rows of padding are zeros.
Var mega_unit(const Var& x, const MegaWeights& weights, const Mask& mask);
Cost mega_cost(const AttentionShape& shape, const MegaWeights& weights);

// The state: averages after the last two positions, 4·states·width numbers, and keys and values of
// the chunk.
std::unique_ptr<Decoder> mega_decoder(const Shape& position, int64_t capacity,
                                      const MegaWeights& weights);

}  // namespace attn
