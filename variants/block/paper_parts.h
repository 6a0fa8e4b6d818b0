// The weights and passes of a block; private to variants/block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/function.h"
#include "core/ops/ops_gated_norm.h"
#include "variants/api/block.h"
#include "variants/api/carrying.h"
#include "variants/api/variant_info.h"

namespace attn {

// Convolved rows [batch, len, channels] of stream `index`, with taps, bias and activation. A
// forward pass sees all positions; a decoder holds the rows before the one at hand.
struct Convolved {
  int64_t stream;
  Var taps, bias;
  bool activated;
};
using Convolve = FunctionRef<Var(const Var& rows, const Convolved& by)>;

class PaperBlock final : public CarryingMixer {
 public:
  PaperBlock(const VariantInfo& base, const AttentionConfig& config);

  // What the mixer reads of rows x [batch, len, width].
  struct Inputs {
    Var q, k, v;  // [batch · parts, inner heads, len, head_dim]; undefined where it reads rows
    GateVars gates;
    Var values;        // rows [batch, len, inner width] that the skip adds
    Var handed;        // the values of the first layer, where the block has a value residual
    Var rows, before;  // of the layer; of the position before, where the block shifts tokens
  };
  // `received` as for CarryingMixer::pass().
  Inputs inputs(const Var& x, const Var& received, const Convolve& convolve) const;
  // The block's output [batch, len, width] of what the mixer answered, [batch · parts, inner heads,
  // len, head_dim].
  Var output(const Var& mixed, const Inputs& in) const;

  // Channels and rows before the current one of each convolved stream.
  struct Stream {
    int64_t channels, before;
  };
  const std::vector<Stream>& streams() const { return streams_; }
  const Attention& inner() const { return *inner_; }
  const LayerBlock& block() const { return block_; }
  double dense_flops() const;  // of one position
  const Mixer* inner_mixer() const { return inner_mixer_; }
  bool carries() const override { return block_.value_residual; }
  Shape handed_shape(int64_t batch, int64_t len) const override {
    return {batch, len, inner_width_};
  }

 private:
  struct Shift {  // of one projection; `share` undefined: it reads x alone
    Var share, down, up;
  };
  struct Gate {
    Var down, up, bias;
    Shift mix;
    int64_t stream = -1;
    Var taps;
    bool shared = false, tanh = false;
  };
  struct Side {  // queries, keys or values
    Shift mix;
    Var weight, bias, taps, taps_bias, gain, shift;
    int64_t heads = 0, dim = 0;  // numbers of a head; zeros follow them up to head_dim
    int64_t stream = -1, shift_stream = -1;
    bool silu = false;
  };

  Passed do_pass(const Var& x, const Var& received, const Mask& mask) const override;
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override;

  void make_side(const std::string& name, int64_t heads, bool convolved, bool silu, Side& side);
  void make_value_residual();
  Var key_heads(const Var& from, const Side& of, const Convolve& convolve) const;
  void make_gate(const GateInput& gate, int64_t rank);
  void check_names() const;
  double taps_deviation() const;
  Var make_taps(const std::string& name, int64_t channels, int64_t& of_stream);
  Shift make_shift(const std::string& name);
  Var shifted(const Var& x, const Var& before, const Shift& by) const;
  int64_t stream(int64_t channels, int64_t taps);
  Var projected(const Var& from, const Side& side, const Convolve& convolve) const;
  Var mixed_values(const Var& values, const Var& from, const Var& first) const;
  int64_t rank_of(double times) const;
  int64_t gate_rank() const;
  void make_output_gate();
  Var gate_of(const Inputs& in) const;
  Var bonus_of(const Inputs& in) const;
  GatedNorm end_of_rows(const Inputs& in) const;
  // Whether the gate is of the pass of norm and skip.
  bool passes_gate() const {
    return block_.gate == LayerBlock::Gate::silu || block_.gate == LayerBlock::Gate::sigmoid;
  }
  bool has_end() const {
    return block_.norm != LayerBlock::Norm::none || passes_gate() ||
           block_.skip != LayerBlock::Skip::none;
  }

  const LayerBlock& block_;
  int64_t key_dim_ = 0;          // numbers of a query and key where they are fewer than head_dim
  int64_t heads_, inner_width_;  // inner_width_: of the mixer's rows, all parts
  std::unique_ptr<Attention> inner_;
  const Mixer* inner_mixer_;
  VariantInfo::Reads reads_;
  Side q_, k_, v_;
  Var first_down_, first_up_, first_bias_;  // of the value residual, in layers that receive
  std::vector<Gate> gates_;
  Var skip_;   // [inner heads] or [inner width]
  Var bonus_;  // ρ [inner width]
  Var norm_gain_, norm_shift_;
  Var gate_down_, gate_up_, gate_bias_;
  Shift gate_mix_;
  Var out_, out_bias_;
  Var shift_share_;  // μ' [width], where the shift depends on the data
  int64_t shift_stream_ = -1;
  std::vector<Stream> streams_;
};

// The parameters of the mixer inside.
Params mixer_params(const VariantInfo& base, const Params& given);
// The block must outlive its decoder.
std::unique_ptr<Decoder> paper_decoder(const PaperBlock& block, const Shape& position,
                                       int64_t capacity);
// The block in double, from its equations.
oracle::Array paper_reference(const VariantInfo& base, const ReferenceInputs& x);
oracle::Array paper_handed_on(const VariantInfo& base, const ReferenceInputs& x);

}  // namespace attn
