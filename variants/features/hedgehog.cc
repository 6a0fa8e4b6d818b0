// hedgehog: kernel attention with learned features [softmax(W·x), softmax(-W·x)], which can be
// fitted to imitate softmax weights. Zhang et al. 2024, arXiv:2402.04347, section 4. Time O(n·d²),
// memory n·d + 2·d²; causal by prefix sums. No limit equals softmax.
#include <array>

#include "core/ops/ops.h"
#include "variants/api/mimicry.h"
#include "variants/api/variant_info.h"
#include "variants/features/features.h"
#include "variants/features/mimicry.h"
#include "variants/reference/features.h"

namespace attn::variants {
namespace {

class Hedgehog final : public Attention, public Mimicking {
 public:
  explicit Hedgehog(const AttentionConfig& config)
      : Attention(config),
        queries_(weight("projection_q", identity(config))),
        keys_(weight("projection_k", identity(config))) {}

  Var mimicry_loss(const Tensor& q, const Tensor& k, const Mask& mask) const override {
    const Var keys = zero_padding(Var(k), mask.kv_lengths);
    const Var queries = q.dim(2) == k.dim(2) ? zero_padding(Var(q), mask.kv_lengths) : Var(q);
    return softmax_mimicry(q, k, pair(queries, queries_), pair(keys, keys_), mask);
  }

 private:
  // As softmax_pair(), with gradients of the weight alone.
  static Var pair(const Var& rows, const Var& weight) {
    const Var y = matmul(rows, weight, false, true);  // [batch, heads, len, head_dim]
    return concat(std::array{softmax(y), softmax(scale(y, -1))}, 3);
  }
  static Tensor identity(const AttentionConfig& config) {
    const int64_t dim = config.head_dim;
    const Tensor start = Tensor::zeros({config.heads, dim, dim});
    for (int64_t row = 0; row < config.heads * dim; ++row) start[row * dim + row % dim] = 1;
    return start;
  }
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(q, k, v,
                            {.causal = mask.causal,
                             .kv_lengths = mask.kv_lengths,
                             .map = softmax_pair(queries_, keys_)});
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return linear_cost(shape, softmax_pair(queries_, keys_));
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, softmax_pair(queries_, keys_));
  }

  Var queries_, keys_;  // [heads, head_dim, head_dim]
};

oracle::Array hedgehog_reference(const ReferenceInputs& x) {
  const auto features = [](const oracle::Array& weight, const oracle::Array& rows,
                           const std::vector<bool>& wanted) {
    std::vector<std::vector<double>> phi;
    for (int64_t b = 0; b < rows.batch; ++b)
      for (int64_t h = 0; h < rows.heads; ++h)
        for (int64_t i = 0; i < rows.len; ++i)
          phi.push_back(wanted[static_cast<size_t>(i)]
                            ? oracle::softmax_pair(oracle::projected(weight, h, rows.row(b, h, i)))
                            : std::vector<double>());
    return phi;
  };
  const auto of_q = features(x.weights[0], x.q, oracle::wanted_of(x.rows, x.q.len)),
             of_k = features(x.weights[1], x.k, oracle::wanted_of({}, x.k.len));
  const auto kernel = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return oracle::dot(of_q[static_cast<size_t>((b * x.q.heads + h) * x.q.len + i)],
                       of_k[static_cast<size_t>((b * x.k.heads + h) * x.k.len + j)]);
  };
  return oracle::kernel_ratio(x.q, x.v, x.visible(), kernel, oracle::no_scale, 0);
}

Traits traits() {
  Traits own = kKernelTraits;
  own.mimicry = true;
  return own;
}

}  // namespace

VariantInfo hedgehog() {
  return {
      .name = "hedgehog",
      .family = "kernel",
      .summary = "kernel attention by learned features, softmaxes of a projection and its opposite",
      .paper = "Zhang et al. 2024, arXiv:2402.04347, section 4",
      .cost_formula =
          "8·n·d·(d+1) + 4·n·d² FLOPs, causal about 258·n·d more inside chunks of 64; memory n·d, "
          "and about 2·d·(d + 192) a thread",
      .traits = traits(),
      .params = {},
      .make = make_as<Hedgehog>,
      .reference = hedgehog_reference,
      .notes = {"projection_q and projection_k [heads, head_dim, head_dim] start as identities.",
                "--train mimicry=STEPS fits both to softmax weights before the training, as the "
                "paper does; without it they are trained on the task alone.",
                "Three maps share the name: this one of two separate softmaxes; one softmax over "
                "both signs with a bias, shared by heads (fla); and exponentials without a sum, "
                "whose maxima of keys do not cancel."}};
}

}  // namespace attn::variants
