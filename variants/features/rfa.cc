// rfa: random feature attention, exp(q̂·k̂) of rows of length 1 estimated by sines and cosines of
// random directions with a learned scale. Peng et al. 2021, arXiv:2103.02143, eqs. 3-5. Time
// O(n·m·d) for m = 2·directions features, memory n·d + m·d; causal by prefix sums.
#include "variants/api/variant_info.h"
#include "variants/features/features.h"
#include "variants/features/wave_attention.h"

namespace attn::variants {
namespace {

class Rfa final : public WaveAttention<Attention> {
 public:
  explicit Rfa(const AttentionConfig& config) : WaveAttention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(q, k, v,
                            {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = map()});
  }
  Cost do_cost(const AttentionShape& shape) const override { return cost_of_waves(shape, false); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, map());
  }
};

}  // namespace

VariantInfo rfa() {
  Traits traits = kKernelTraits;
  traits.random = true;
  traits.convex = false;  // an estimate of a positive weight may be negative
  return {
      .name = "rfa",
      .family = "kernel",
      .summary = "attention to directions of rows, estimated by random sines and cosines",
      .paper = "Peng et al. 2021, arXiv:2103.02143, eqs. 3-5",
      .cost_formula =
          "4·n·m·(d+1) + 2·n·m·d FLOPs for m = 2·directions features; causal about 86·n·(m+d) "
          "more inside chunks of 64; memory n·d, and about m·(d + 192) a thread",
      .traits = traits,
      .params = {{"directions", 64,
                  "random directions of each head; twice as many features. With fewer the divisor "
                  "is near 0 too often",
                  64, 65536},
                 {"orthogonal", false, "directions orthogonal in blocks of head_dim"}},
      .make = make_as<Rfa>,
      .reference =
          [](const ReferenceInputs& x) { return wave_reference(x, x.visible(), oracle::no_scale); },
      .notes = {"No limit equals softmax attention: rows are divided by their length, so that "
                "weights estimate exp(q̂·k̂). That length is √(|x|² + 1e-6).",
                "Estimates may be negative. A divisor nearer to 0 than 0.001 is replaced by 0.001 "
                "with its sign; the authors' code clamps at 1 or 0.001, by path.",
                "omega is drawn once; the authors draw another from a pool of 500 at each step of "
                "training. Features are divided by √directions, theirs multiplied by 0.1."}};
}

}  // namespace attn::variants
