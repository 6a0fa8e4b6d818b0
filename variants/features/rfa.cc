// rfa: random feature attention, exp(q̂·k̂) of rows of length 1 estimated by sines and cosines of
// random directions with a learned scale. Peng et al. 2021, arXiv:2103.02143, eqs. 3-5. Time
// O(n·m·d) for m = 2·directions features, memory n·d + m·d; causal by prefix sums.
#include "variants/api/variant_info.h"
#include "variants/features/features.h"
#include "variants/features/scaled_directions.h"
#include "variants/reference/features.h"
#include "variants/reference/gated.h"

namespace attn::variants {
namespace {

class Rfa final : public Attention {
 public:
  explicit Rfa(const AttentionConfig& config) : Attention(config) {
    const int64_t heads = config.heads, dim = config.head_dim;
    omega_ = weight("omega",
                    random_directions(heads, params().integer("directions"), dim,
                                      params().flag("orthogonal"), rng(config.seed, "rfa.omega")),
                    false);
    scales_ = weight("scale", Tensor::full({heads, dim}, 1));
  }

 private:
  FeatureMap map() const { return unit_waves(scaled_directions(omega_.value(), scales_), true); }
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(q, k, v,
                            {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = map()});
  }
  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = linear_cost(shape, unit_waves(omega_, true));
    cost.peak_bytes += sizeof(real) * static_cast<double>(omega_.value().size());  // scaled
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, map());
  }

  Var omega_;   // [heads, directions, head_dim]
  Var scales_;  // [heads, head_dim]
};

oracle::Array rfa_reference(const ReferenceInputs& x) {
  const oracle::Array q = oracle::unit_rows(x.q, 1e-6), k = oracle::unit_rows(x.k, 1e-6);
  const auto kernel = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return oracle::mean_cosine(x.weights[0], h, x.weights[1].row(0, 0, h), q.row(b, h, i),
                               k.row(b, h, j));
  };
  return oracle::kernel_ratio(x.q, x.v, x.visible(), kernel, oracle::no_scale, 1e-3);
}

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
      .reference = rfa_reference,
      .notes = {"No limit equals softmax attention: rows are divided by their length, so that "
                "weights estimate exp(q̂·k̂).",
                "Estimates may be negative. A divisor nearer to 0 than 0.001 is replaced by 0.001 "
                "with its sign; the authors' code clamps at 1 or 0.001, by path.",
                "omega is drawn once; the authors draw another from a pool of 500 at each step of "
                "training. Features are divided by √directions, theirs multiplied by 0.1."}};
}

}  // namespace attn::variants
