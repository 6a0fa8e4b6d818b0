// mean: every output is the mean of the visible values (causal: of those up to its position). The
// control without attention and without weights. Iyyer et al. 2015, ACL P15-1162, section 3
// (the average alone). Time 2·n·d, memory n·d.
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/reference/mixers.h"
#include "variants/control/control.h"

namespace attn::variants {
namespace {

class Mean final : public Mixer {
 public:
  explicit Mean(const AttentionConfig& config) : Mixer(config) {}

 private:
  Var do_mix(const Var& x, const Mask& mask) const override { return running_mean(x, mask); }
  Cost do_cost(const AttentionShape& s) const override {
    return mean_cost(s.batch, s.kv_len, width());
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return mean_decoder(position, capacity);
  }
};

}  // namespace

VariantInfo mean() {
  return {.name = "mean",
          .family = "control",
          .summary = "the mean of the visible values: no attention at all, the control",
          .paper = "Iyyer et al. 2015, ACL P15-1162, section 3",
          .cost_formula = "2·n·d FLOPs, memory n·d",
          .traits = {.causal = true,
                     .linear_time = true,
                     .convex = true,
                     .permutable = true,
                     .decode = true,
                     .mixer = true},
          .make = make_as<Mean>,
          .reference = [](const ReferenceInputs& x) {
            return oracle::split(
                oracle::mean(oracle::merged(x.v), x.mask.causal, {x.mask.kv_lengths}, x.rows),
                x.v.heads);
          }};
}

}  // namespace attn::variants
