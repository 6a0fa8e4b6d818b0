// The end of a block, from what the mixer answered to the layer's output; see block.h. Costs the
// gate's and the output's products, and a pass over rows for norm, skip and gate together.
#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "core/ops/ops_gated_norm.h"
#include "core/ops/ops_heads.h"
#include "variants/api/written_keys.h"
#include "variants/block/paper_parts.h"

namespace attn {
namespace {

// [heads] to [heads · times]: each number so many times.
Var widened(const Var& numbers, int64_t times) {
  const int64_t count = numbers.value().size();
  return reshape(repeat_heads(reshape(numbers, {1, count, 1, 1}), times), {count * times});
}

// [batch · parts, heads, len, dim] to rows [batch, len, heads · parts · dim].
Var from_parts(const Var& x, int64_t parts) {
  if (parts == 1) return merge_heads(x);
  const int64_t batch = x.dim(0) / parts, heads = x.dim(1), len = x.dim(2), dim = x.dim(3);
  const Var rows = merge_heads(reshape(x, {batch, parts * heads, len, dim}));
  return reshape(merge_heads(reshape(rows, {batch * len, parts, heads, dim})),
                 {batch, len, heads * parts * dim});
}

}  // namespace

Var PaperBlock::gate_of(const Inputs& in) const {
  Var from = shifted(in.rows, in.before, gate_mix_);
  if (gate_down_.defined()) from = linear(from, gate_down_, {});
  if (block_.gate_sigmoid_inside) from = sigmoid(from);
  return linear(from, gate_up_, gate_bias_);
}

// (Σ q ⊙ k ⊙ ρ)·v of each head, rows [batch, len, inner width].
Var PaperBlock::bonus_of(const Inputs& in) const {
  const WritesKeys* const writer = as_writing_keys(*inner_);
  const Var keys = writer ? writer->written_keys(in.k, in.gates) : in.k;
  const Var met = multiply(merge_heads(multiply(in.q, keys)), bonus_);
  const Shape apart = {met.dim(0), met.dim(1), heads_, config().head_dim};
  return reshape(scale_rows(reshape(in.values, apart), sum_last(reshape(met, apart))), met.shape());
}

// Norm, skip and gate of the data, for one pass over rows.
GatedNorm PaperBlock::end_of_rows(const Inputs& in) const {
  using Norm = LayerBlock::Norm;
  const bool of_heads = block_.norm == Norm::rms_of_heads || block_.norm == Norm::layer_of_heads;
  const bool rms = block_.norm == Norm::rms_of_heads || block_.norm == Norm::rms;
  GatedNorm by = {.norm = block_.norm == Norm::none ? GatedNorm::Norm::none
                          : rms                     ? GatedNorm::Norm::rms
                                                    : GatedNorm::Norm::layer,
                  .segment = of_heads ? inner_width_ / heads_ : inner_width_,
                  .epsilon = block_.norm_epsilon,
                  .gain = norm_gain_,
                  .shift = norm_shift_,
                  .gate_first = block_.gate_before_norm};
  if (skip_.defined()) {
    by.skipped = in.values;
    by.skip = block_.skip == LayerBlock::Skip::head ? widened(skip_, inner_width_ / heads_) : skip_;
  }
  if (passes_gate()) {
    by.gate = gate_of(in);
    by.activation = block_.gate == LayerBlock::Gate::silu ? GatedNorm::Activation::silu
                                                          : GatedNorm::Activation::sigmoid;
  }
  return by;
}

Var PaperBlock::output(const Var& mixed, const Inputs& in) const {
  Var rows = inner_mixer_ ? mixed : from_parts(mixed, block_.value_parts);
  if (has_end()) rows = gated_norm(rows, end_of_rows(in));
  if (bonus_.defined()) rows = add(rows, bonus_of(in));
  if (block_.gate == LayerBlock::Gate::linear) rows = multiply(rows, gate_of(in));
  if (block_.gate == LayerBlock::Gate::gelu) rows = multiply(rows, gelu(gate_of(in)));
  if (block_.gelu) rows = gelu(rows);
  if (!block_.projects_output) return rows;
  rows = linear(rows, out_, out_bias_);
  if (!block_.glu) return rows;
  return multiply(slice(rows, 2, 0, width()), sigmoid(slice(rows, 2, width(), 2 * width())));
}

}  // namespace attn
