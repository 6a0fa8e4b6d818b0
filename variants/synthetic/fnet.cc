// fnet: the real part of the Fourier transform along positions and channels; no weights. Lee-Thorp
// et al. 2021, arXiv:2105.03824, eq. 3. Time 2.5·n·d·(log2(n) + log2(d)), memory n·d.
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/reference/long_convolutions.h"
#include "variants/synthetic/synthetic.h"

namespace attn::variants {
namespace {

class FNet final : public Mixer {
 public:
  explicit FNet(const AttentionConfig& config) : Mixer(config) {}

 private:
  Var do_mix(const Var& x, const Mask& mask) const override {
    return fourier_mixing(x, mask.kv_lengths);
  }
  Cost do_cost(const AttentionShape& s) const override {
    return fourier_mixing_cost(s.batch, s.kv_len, width());
  }
};

}  // namespace

VariantInfo fnet() {
  return {
      .name = "fnet",
      .family = "synthetic",
      .summary = "the real part of the Fourier transform along positions and channels",
      .paper = "Lee-Thorp et al. 2021, arXiv:2105.03824, eq. 3",
      .cost_formula =
          "2.5·n·d·(log2(n) + log2(d)) FLOPs for a width of d = heads · head_dim; memory 2·n·d",
      .traits = {.mixer = true},
      .params = {},
      .make = make_as<FNet>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::split(
                oracle::fourier_mixing(oracle::merged(x.v), {x.mask.kv_lengths}, x.rows),
                x.v.heads);
          },
      .notes = {"Nothing is scaled, as in the paper: outputs are about √(n·d) times as large as "
                "the input, which the norm of the block around it undoes.",
                "A padded sequence is transformed at its own length. The paper's code "
                "transforms padding too, so that its outputs depend on the padded length.",
                "Every output sees every input: never causal, no decoder. Lengths with prime "
                "factors beyond 13 take several times as long."}};
}

}  // namespace attn::variants
