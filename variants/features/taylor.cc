// taylor: attention with the kernel 1 + s + s²/2, the Taylor polynomial of e^s, for s = (W_q·q)·
// (W_k·k)/√f with f numbers of a projection. Arora et al. 2024 (Based), arXiv:2402.18668, section
// 4.1. Time O(n·m·d) for m = 1 + f + f·(f + 1)/2 features, memory n·d + m·d; causal by prefix sums.
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/features/features.h"
#include "variants/reference/features.h"

namespace attn::variants {
namespace {

class Taylor final : public Attention {
 public:
  explicit Taylor(const AttentionConfig& config) : Attention(config) {
    if (config.key_dim > 0) return;
    queries_ = draw("projection_q");
    keys_ = draw("projection_k");
  }

 private:
  // Projected numbers are half as large as those of a row: s starts at about 1/4, where the
  // polynomial is close to e^s.
  Var draw(const char* name) {
    const int64_t dim = config().head_dim;
    return normal_weight(name, {config().heads, params().integer("dim"), dim},
                         0.5 / std::sqrt(static_cast<double>(dim)));
  }
  // Where a block has projected queries and keys, what is read are their first numbers.
  FeatureMap map() const {
    if (queries_.defined()) return taylor_map(queries_, keys_);
    const int64_t count = config().key_dim, dim = config().head_dim;
    const Tensor first = Tensor::zeros({1, count, dim});
    for (int64_t i = 0; i < count; ++i) first[i * dim + i] = 1;
    FeatureMap read = taylor_map(Var(first), {});
    read.learned = false;
    return read;
  }
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(q, k, v,
                            {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = map()});
  }
  Cost do_cost(const AttentionShape& shape) const override { return linear_cost(shape, map()); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, map());
  }

  Var queries_, keys_;  // [heads, f, head_dim]; undefined where a block projects
};

oracle::Array taylor_reference(const ReferenceInputs& x) {
  const double tau = 1 / std::sqrt(static_cast<double>(x.params().integer("dim")));
  const bool projects = x.config.key_dim == 0;
  const oracle::Array q = projects ? oracle::projected_rows(x.weights[0], x.q) : x.q,
                      k = projects ? oracle::projected_rows(x.weights[1], x.k) : x.k;
  const auto kernel = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    const double s = tau * oracle::dot(q.row(b, h, i), k.row(b, h, j));
    return 1 + s + s * s / 2;
  };
  return oracle::kernel_ratio(x.q, x.v, x.visible(), kernel, oracle::no_scale, 0);
}

void set_identity_maps(const Attention& attention) {
  for (const Weight& weight : attention.weights()) {
    const Tensor identity = Tensor::zeros(weight.value.shape());
    const int64_t rows = identity.dim(1), dim = identity.dim(2);
    for (int64_t i = 0; i < identity.size(); ++i)
      if (i / dim % rows == i % dim) identity[i] = 1;
    weight.value.set_value(identity);
  }
}

constexpr int64_t kMostDim = 64;

}  // namespace

VariantInfo taylor() {
  return {
      .name = "taylor",
      .family = "kernel",
      .summary = "kernel attention by the second-order Taylor polynomial of the exponential",
      .paper = "Arora et al. 2024, arXiv:2402.18668, section 4.1",
      .cost_formula =
          "4·n·m·(d+1) + 4·n·f·d FLOPs for m = 1 + f + f·(f+1)/2 features; causal about "
          "86·n·(m+d) more inside chunks of 64; memory n·d, and about m·(d + 192) a thread",
      .traits = kKernelTraits,
      .params = {{"dim", 16, "numbers f of a projected query or key", 1, kMostDim}},
      .make = make_as<Taylor>,
      .reference = taylor_reference,
      .limit = [](const AttentionShape& shape) -> std::optional<VariantInfo::Limit> {
        if (shape.head_dim > kMostDim) return std::nullopt;
        return VariantInfo::Limit{.params = {{"dim", shape.head_dim}},
                                  .tolerance = 2e-3,  // |s|³/6 at this scale
                                  .prepare = set_identity_maps,
                                  .input_scale = 0.25,
                                  .sampled = true};
      },
      .notes =
          {"The layer projects to head_dim numbers, then projection_q and projection_k "
           "[heads, dim, head_dim] to dim; the paper's layer projects to dim at once, and so "
           "does block=paper.",
           "The kernel is at least 1/2, but states hold s and s²/2 apart: at huge logits the "
           "terms of a negative s cancel, and digits are lost that one pair alone would keep.",
           "s is divided by √dim, as in the paper; fla's parallel mode does not before 0.6.0."},
      .weights_cancel = true,
      .block = LayerBlock{
          .key_dim = "dim",
          .notes = {"Arora et al. 2024, section 4.1; HazyResearch/based, "
                    "based/models/mixers/linear_attention.py: queries and keys of a head are "
                    "projected to dim numbers at once, values to head_dim, no biases, and no norm. "
                    "It is the linear attention of the stack `based`.",
                    "Heads must be at least as wide as dim."}}};
}

}  // namespace attn::variants
