// dsa: DeepSeek sparse attention: a lightning indexer scores all keys by a few narrow heads, and
// each query attends to the keys of its largest scores. DeepSeek-V3.2 2025, arXiv:2512.02556, eqs.
// 1-2. Time n²·index_heads·index_dim (causal) and 4·n·keys·d, memory n·d.
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/reference/selection.h"
#include "variants/selection/selection.h"

namespace attn::variants {
namespace {

class Dsa final : public Attention {
 public:
  explicit Dsa(const AttentionConfig& config)
      : Attention(config),
        keys_(params().integer("keys")),
        is_plain_(params().text("scorer") == "plain") {
    if (is_plain_) return;
    const int64_t heads = params().integer("index_heads"), dim = params().integer("index_dim");
    const int64_t d = config.head_dim;
    const double deviation = 1 / std::sqrt(static_cast<double>(d));
    const Tensor key = Tensor::normal({d, dim}, rng(config.seed, "dsa.key"), deviation);
    const Tensor own =
        Tensor::normal({config.heads, d, heads * dim}, rng(config.seed, "dsa.query"), deviation);
    const Tensor query(own.shape());  // halfway from the key's projection, so that q·k counts
    for (int64_t i = 0; i < own.size(); ++i) {
      const int64_t row = i / (heads * dim) % d, column = i % dim;
      query[i] = std::sqrt(real(0.5)) * (own[i] + key[row * dim + column]);
    }
    const Tensor weight =
        Tensor::normal({config.heads, d, heads}, rng(config.seed, "dsa.weight"), deviation / 4);
    weights_of_ = {this->weight("index_query", query, false), this->weight("index_key", key, false),
                   this->weight("index_weight", weight, false)};
  }

 private:
  // Weights may be set after the construction: they are read at each call.
  Indexer indexer() const {
    if (is_plain_) return {};
    return {weights_of_[0].value(), weights_of_[1].value(), weights_of_[2].value()};
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    if (is_plain_) return top_attention(q, k, v, keys_, mask);
    return top_attention(q, k, v, keys_, mask,
                         indexer().scores(q.value(), k.value(), mask.kv_lengths));
  }

  Cost do_cost(const AttentionShape& s) const override {
    return is_plain_ ? top_cost(s, keys_) : indexed_cost(s, keys_, indexer());
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return top_decoder(position, capacity, keys_, indexer().rows());
  }

  int64_t keys_;
  bool is_plain_;
  std::vector<Var> weights_of_;  // index_query, index_key, index_weight
};

// Weights: index_query [1, heads, d, index_heads·index_dim], index_key [1, 1, d, index_dim],
// index_weight [1, heads, d, index_heads].
oracle::Array dsa_reference(const ReferenceInputs& x) {
  const bool is_plain = x.params().text("scorer") == "plain";
  const int64_t heads = x.params().integer("index_heads"), dim = x.params().integer("index_dim");
  return oracle::top_attention(
      x.q, x.k, x.v, x.visible(), x.params().integer("keys"),
      is_plain ? oracle::OfPair([&](int64_t b, int64_t h, int64_t i, int64_t j) {
        return oracle::dot(x.q.row(b, h, i), x.k.row(b, h, j));
      })
               : oracle::lightning_scores(x.q, x.k, x.weights[0], x.weights[1], x.weights[2], heads,
                                          dim));
}

}  // namespace

VariantInfo dsa() {
  return {
      .name = "dsa",
      .family = "selection",
      .summary = "softmax attention to the keys that a narrow indexer scores highest",
      .paper = "DeepSeek-AI 2025, DeepSeek-V3.2, arXiv:2512.02556, eqs. 1-2",
      .cost_formula =
          "n·(n+48)·index_heads·index_dim + 4·n·keys·d + 2·n·d·(index_heads·(index_dim + "
          "1) + index_dim) FLOPs; memory n·(d + (index_heads + 2)·index_dim)",
      .traits = {.causal = true, .random = true, .convex = true, .decode = true},
      .params = {{"keys", 64, "keys that a query attends to", 1, 65536},
                 {"scorer",
                  {"lightning", "plain"},
                  "lightning: the indexer; plain: q·k, with which this is topk"},
                 ParamSpec("index_heads", 2, "heads of the indexer of each attention head", 1, 64)
                     .when("scorer", "lightning"),
                 ParamSpec("index_dim", 16,
                           "width of a head of the indexer; its keys pass a layer norm, which "
                           "leaves of a single "
                           "channel 0",
                           2, 256)
                     .when("scorer", "lightning")},
      .make = make_as<Dsa>,
      .reference = dsa_reference,
      .limit = [](const AttentionShape& s) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.params = {{"keys", s.kv_len}}};
      },
      .causal_alone = true,
      .notes = {
          "The paper's indexer is one for all heads and reads the layer's input; this one is of "
          "each "
          "head and reads its queries and keys, which are what an attention has. Its "
          "keys pass a layer norm, as the paper's. Left out: the "
          "rotation of the indexer's first channels, the Hadamard rotation (which changes no "
          "product), and the factor of w (which changes no order).",
          "The choice has no gradient: the paper trains the indexer by its distance to the dense "
          "weights. Here index_query [heads, d, index_heads·index_dim], index_key [d, index_dim] "
          "and "
          "index_weight [heads, d, index_heads] stay as drawn: random projections of q and k that "
          "are half the same, so that their product grows with q·k, and w = 1 + q·index_weight.",
          "Of equal scores the earlier key is larger. Scores of 0, of keys that no index head "
          "likes, "
          "are many. The paper keeps 2048 keys of 64 heads of 128 on 128 attention heads.",
      }};
}

}  // namespace attn::variants
