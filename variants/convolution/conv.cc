// conv: 1-D convolution over positions, O_i = b + Σ_k x_{i-p+k}·W_k with a full matrix for each of
// `kernel` offsets, zeros beyond both ends. Waibel et al. 1989, IEEE Trans. ASSP 37(3), section II
// (time delays). Time 2·n·kernel·d², memory n·d; one linear map, no non-linearity.
#include "variants/api/variant_info.h"
#include "variants/reference/mixers.h"
#include "variants/convolution/convolution.h"

namespace attn::variants {
namespace {

class Conv final : public WindowNet {
 public:
  explicit Conv(const AttentionConfig& config) : Conv(config, config.params.integer("kernel")) {}

 private:
  Conv(const AttentionConfig& config, int64_t kernel)
      : WindowNet(config, kernel, config.causal ? kernel - 1 : kernel / 2) {
    add_layer(width(), "weight", "bias");
  }
};

}  // namespace

VariantInfo conv() {
  return {.name = "conv",
          .family = "convolution",
          .summary = "1-D convolution over positions, without queries and keys",
          .paper = "Waibel et al. 1989, IEEE Trans. ASSP 37(3), section II",
          .cost_formula = "2·n·kernel·d² FLOPs for a width of d = heads · head_dim; memory n·d",
          .traits = {.causal = true, .linear_time = true, .decode = true, .mixer = true},
          .params = {{"kernel", 5,
                      "positions that an output sees, its own in their middle (causal: the last); "
                      "odd unless causal"}},
          .make = make_as<Conv>,
          .reference =
              [](const ReferenceInputs& x) {
                const int64_t kernel = x.params().integer("kernel");
                return oracle::split(
                    oracle::convolution(oracle::merged(x.v), oracle::flat(x.weights[0]),
                                        x.weights[1], x.config.causal ? kernel - 1 : kernel / 2,
                                        {x.mask.kv_lengths}, x.rows),
                    x.v.heads);
              },
          .skip_reason = [](const AttentionShape& shape,
                            const Params& params) -> std::optional<std::string> {
            if (shape.causal || params.integer("kernel") % 2 == 1) return std::nullopt;
            return "an even kernel has no middle";
          },
          .notes = {"weight [kernel, in, out] for x·W, the earliest position first."}};
}

}  // namespace attn::variants
