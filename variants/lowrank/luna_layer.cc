// Packing and unpacking of a layer; see luna_layer.h. Y_P = Attention(P, X), Y_X = Attention(X,
// Y_P), and LayerNorm(P + Y_P) is the P of the next layer. Costs two attentions to m rows or of m.
#include "variants/lowrank/luna_layer.h"

#include <cmath>
#include <string>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "variants/api/carrying.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/latents.h"

namespace attn {
namespace {

class LunaLayer final : public CarryingMixer {
 public:
  explicit LunaLayer(const AttentionConfig& config)
      : CarryingMixer(config), latents_(params().integer("latents")) {
    // As in the authors' code: Glorot and Bengio's numbers, over √2 where no sum follows.
    const double of_row = 1 / std::sqrt(static_cast<double>(width())),
                 of_projection = of_row / std::sqrt(2.0);
    if (config.receives) {
      gain_ = weight("packed_norm.gain", Tensor::full({width()}, 1));
      shift_ = weight("packed_norm.shift", Tensor::zeros({width()}));
    } else {
      latent_rows_ = normal_weight("latents", {latents_, width()}, of_row);
    }
    pack_query_ = projection("pack.query", of_projection);
    pack_ = projection("pack.keys", of_projection);
    query_ = projection("query", of_projection);
    keys_ = projection("keys", of_projection);
    output_ = projection("output", of_row);
  }

  Shape handed_shape(int64_t batch, int64_t) const override { return {batch, latents_, width()}; }

 private:
  struct Projection {
    Var matrix, bias;  // [width, width], [width]
    Var of(const Var& rows) const { return linear(rows, matrix, bias); }
  };
  Projection projection(const std::string& name, double deviation) {
    return {normal_weight("W_" + name, {width(), width()}, deviation),
            weight("W_" + name + ".bias", Tensor::zeros({width()}))};
  }
  Var heads_of(const Var& rows) const { return split_heads(rows, config().heads); }

  // P [batch, latents, width].
  Var queries_that_pack(const Var& received, int64_t batch) const {
    if (received.defined()) return layer_norm(received, gain_, shift_);
    return reshape(for_each_entry(reshape(latent_rows_, {1, latents_, width()}), batch),
                   {batch, latents_, width()});
  }

  Passed do_pass(const Var& x, const Var& received, const Mask& mask) const override {
    const Var rows = zero_padding(x, mask.kv_lengths);
    const Var packing = queries_that_pack(received, x.dim(0));
    const Var keys = heads_of(pack_.of(rows));
    const Var packed = merge_heads(softmax_attention(heads_of(pack_query_.of(packing)), keys, keys,
                                                     {.kv_lengths = mask.kv_lengths}));
    const Var read = heads_of(keys_.of(packed));
    const Var found = merge_heads(softmax_attention(heads_of(query_.of(rows)), read, read));
    return {output_.of(found), add(packing, packed)};
  }

  int64_t latents_;
  Var latent_rows_;   // P of the first layer, [latents, width]
  Var gain_, shift_;  // of what is received, [width]
  Projection pack_query_, pack_, query_, keys_, output_;
};

}  // namespace

VariantInfo layer_of_luna() {
  return {
      .family = "low rank",
      .summary = "the paper's layer around luna: its packed rows are handed on to the next layer",
      .paper = "Ma et al. 2021, arXiv:2106.01540, section 3",
      .cost_formula =
          "as counted: 8·n·latents·width and 6·n·width² FLOPs and 4·latents·width²; memory n·width",
      .traits = {.linear_time = true, .permutable = true, .mixer = true, .nonlinear = true},
      .params = {latents_param()},
      .make = make_as<LunaLayer>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::split(oracle::luna_layer(oracle::merged(x.v), x.received, x.weights,
                                                    x.v.heads, x.mask.kv_lengths)
                                     .out,
                                 x.v.heads);
          },
      .handed_on =
          [](const ReferenceInputs& x) {
            return oracle::luna_layer(oracle::merged(x.v), x.received, x.weights, x.v.heads,
                                      x.mask.kv_lengths)
                .handed;
          },
      .carries = true,
      .notes =
          {"Ma et al. 2021, section 3; XuezheMax/fairseq-apollo, fairseq/modules/luna_attention.py "
           "(LunarMultiheadAttention, tied keys and values) and luna_layer.py: C = X·W_pack.keys, "
           "Y_P = softmax((P·W_pack.query)·Cᵀ/√d)·C of each head, K = Y_P·W_keys, Y = softmax((X·"
           "W_query)·Kᵀ/√d)·K·W_output, all with biases.",
           "P is learned in the first layer alone; a later one reads LayerNorm(P + Y_P) of the "
           "layer before. That norm is of the layer that reads it, so that none is left unread "
           "behind the last layer; the code has it in the layer that hands on. The code's dropout "
           "of Y_P is "
           "left out, and P is normed after its sum also where the model norms before.",
           "Both sides alone: rows that have read the whole sequence hold the future. The authors' "
           "causal layer (LunarCausalAttention) hands none on; it is causal luna, without a block.",
           "As many heads pack as unpack; P starts at N(0, 1/width), without positions of its "
           "own."},
      // A sequence of one position packs into equal rows, among which gradients of queries cancel.
      .rounding = 16};
}

}  // namespace attn
