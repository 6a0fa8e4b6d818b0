// mla: multi-head latent attention: keys and values of all heads are projections of one small
// latent a position, which alone is cached, beside one rotated key. DeepSeek-AI 2024,
// arXiv:2405.04434, section 2.1, eqs. 9 to 19. Time 2·n²·(2·d + heads·rotary), causal half, and the
// projections; memory n·(d + heads·rotary), d = heads · head_dim; a step reads n·(latent + rotary)
// numbers.
#include <array>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/mla.h"

namespace attn::variants {
namespace {

class Mla final : public Mixer {
 public:
  explicit Mla(const AttentionConfig& config)
      : Mixer(config), latent_(params().integer("latent")), rotary_(params().integer("rotary")) {
    const int64_t heads = config.heads;
    w_.heads = heads;
    w_.down = glorot_weight("down", {width(), latent_ + rotary_});
    if (params().flag("norm")) w_.gain = weight("gain", Tensor::full({latent_}, 1));
    w_.up_k = glorot_weight("up_k", {latent_, width()});
    w_.up_v = glorot_weight("up_v", {latent_, width()});
    w_.query = glorot_weight("query", {width(), width() + heads * rotary_});
    w_.out = glorot_weight("out", {width(), width()});
    const MemoryScope scope(Purpose::weights);
    if (rotary_ > 0) angles_ = rotary_table(config.max_len, rotary_);
  }

 private:
  Tensor angles(int64_t positions) const {
    return rotary_ == 0 || positions <= angles_.dim(0) ? angles_ : rotary_table(positions, rotary_);
  }

  struct Heads {
    Var k, v;  // [batch, heads, len, head_dim + rotary or head_dim]
  };
  Heads heads_of(const Var& x, const Tensor& table) const {
    const LatentRows rows = latent_rows(x, w_, table, 0);
    Heads made;
    made.k = linear_to_heads(rows.latent, w_.up_k, w_.heads);
    if (rotary_ > 0) {
      const std::array parts = {made.k, repeat_heads(rows.rotated, w_.heads)};
      made.k = concat(parts, 3);
    }
    made.v = linear_to_heads(rows.latent, w_.up_v, w_.heads);
    return made;
  }

  Var do_mix(const Var& x, const Mask& mask) const override {
    const Var rows = zero_padding(x, mask.kv_lengths);
    const Tensor table = angles(x.dim(1));
    const Heads heads = heads_of(rows, table);
    const Var q = latent_queries(rows, w_, table, 0);
    const Var mixed = softmax_attention(q, heads.k, heads.v,
                                        {.causal = mask.causal, .kv_lengths = mask.kv_lengths});
    return linear_from_heads(mixed, w_.out);
  }

  Cost do_cost(const AttentionShape& shape) const override {
    return latent_attention_cost(shape, w_);
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return latent_decoder(position, capacity, w_, angles(capacity));
  }

  int64_t latent_, rotary_;
  SharedLatent w_;
  Tensor angles_;  // [max_len, rotary]; undefined without rotary
};

}  // namespace

VariantInfo mla() {
  return {
      .name = "mla",
      .family = "low rank",
      .summary = "keys and values of all heads from one small latent, which alone is cached",
      .paper = "DeepSeek-AI 2024, arXiv:2405.04434, section 2.1",
      .cost_formula =
          "2·n²·(2·d + heads·rotary) FLOPs, causal half, and 2·n·(2·d² + 3·latent·d) + "
          "2·n·d·rotary·(heads + 1) for the projections, d = heads · head_dim; state n·(latent + "
          "rotary)",
      .traits = {.causal = true, .decode = true, .mixer = true},
      .params = {{"latent", 128, "numbers of a position that keys and values are made of", 1, 8192},
                 {"rotary", 32, "numbers of the rotated key, one for all heads; 0: none", 0, 1024},
                 {"norm", true, "a root-mean-square normalisation of the latent"}},
      .make = make_as<Mla>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::split(
                oracle::latent_attention(oracle::merged(x.v), x.weights, x.v.heads,
                                         x.params().integer("rotary"), x.params().flag("norm"),
                                         x.mask.causal, x.mask.kv_lengths, x.rows),
                x.v.heads);
          },
      .notes = {"The whole attention of the paper: it reads the layer's input, and its "
                "projections are its own and part of its cost. Queries have no latent of their "
                "own (as in the smaller model of the paper), and logits no factor for extended "
                "contexts.",
                "A step brings queries to the latent, so that all heads read the same latent + "
                "rotary numbers a position, as keys and as values: what it saves is bytes of "
                "state. Popular code caches keys and values of all heads.",
                "The cache holds the normalised latent and the rotated key. Pairs of neighbouring "
                "numbers are rotated."}};
}

}  // namespace attn::variants
