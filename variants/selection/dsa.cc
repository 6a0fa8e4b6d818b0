// dsa: DeepSeek sparse attention: a lightning indexer scores all keys by a few narrow heads, and
// each query attends to the keys of its largest scores, the same for all attention heads.
// DeepSeek-V3.2 2025, arXiv:2512.02556, eqs. 1-3. Time n²·index_heads·index_dim (causal) for all
// heads together, and 4·n·keys·d; memory n·d.
#include "core/base/check.h"
#include "variants/api/mimicry.h"
#include "variants/api/variant_info.h"
#include "variants/reference/selection.h"
#include "variants/selection/selection.h"

namespace attn::variants {
namespace {

class Dsa final : public Attention, public Mimicking {
 public:
  explicit Dsa(const AttentionConfig& config)
      : Attention(config),
        keys_(params().integer("keys")),
        is_plain_(params().text("scorer") == "plain"),
        is_shared_(params().text("indexer") == "shared") {
    if (is_plain_) return;
    const IndexStart start("dsa", config.seed, config.heads, config.head_dim,
                           params().integer("index_heads"), params().integer("index_dim"),
                           is_shared_);
    weights_of_ = {moved_weight("index_query", start.query), moved_weight("index_key", start.key),
                   moved_weight("index_weight", start.weight)};
  }

  Var mimicry_loss(const Tensor& q, const Tensor& k, const Mask& mask) const override {
    ATTN_CHECK(!is_plain_, "dsa with scorer=plain has no indexer to fit");
    return index_mimicry(q, k, weights_of_, mask);
  }
  bool can_go_on() const override { return !is_plain_; }
  Var chosen_mimicry_loss(const Tensor& q, const Tensor& k, const Mask& mask) const override {
    ATTN_CHECK(!is_plain_, "dsa with scorer=plain has no indexer to fit");
    return index_mimicry(q, k, weights_of_, mask, keys_);
  }

 private:
  // Weights may be set after the construction: they are read at each call.
  Indexer indexer() const {
    if (is_plain_) return {};
    return {weights_of_.query.value(), weights_of_.key.value(), weights_of_.weight.value()};
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
    if (!is_plain_ && is_shared_)
      return shared_choice_decoder(position, capacity, keys_, indexer());
    return top_decoder(position, capacity, keys_, indexer().rows());
  }

  int64_t keys_;
  bool is_plain_, is_shared_;
  IndexWeights weights_of_;
};

// Weights: index_query [1, heads, d, index_heads·index_dim], index_key [1, heads, d, index_dim] or,
// of indexers of each head, [1, 1, d, index_dim], index_weight [1, heads, d, index_heads].
oracle::Array dsa_reference(const ReferenceInputs& x) {
  const bool is_plain = x.params().text("scorer") == "plain";
  const int64_t heads = x.params().integer("index_heads"), dim = x.params().integer("index_dim");
  const auto scores = x.params().text("indexer") == "shared" ? oracle::shared_lightning_scores
                                                             : oracle::lightning_scores;
  return oracle::top_attention(
      x.q, x.k, x.v, x.visible(), x.params().integer("keys"),
      is_plain ? oracle::OfPair([&](int64_t b, int64_t h, int64_t i, int64_t j) {
        return oracle::dot(x.q.row(b, h, i), x.k.row(b, h, j));
      })
               : scores(x.q, x.k, x.weights[0], x.weights[1], x.weights[2], heads, dim));
}

}  // namespace

VariantInfo dsa() {
  return {
      .name = "dsa",
      .family = "selection",
      .summary = "softmax attention to the keys that a narrow indexer scores highest",
      .paper = "DeepSeek-AI 2025, DeepSeek-V3.2, arXiv:2512.02556, eqs. 1-3",
      .cost_formula =
          "4·n·keys·d + 2·n·d·(index_heads·(index_dim + 1) + index_dim) FLOPs a head, and "
          "n·(n+48)·index_heads·index_dim a sequence, or indexer=per_head a head; memory n·d, and "
          "n·(index_heads + 2)·index_dim a sequence or head",
      .traits = {.causal = true, .random = true, .convex = true, .decode = true, .mimicry = true},
      .params =
          {{"keys", 64, "keys that a query attends to", 1, 65536},
           {"scorer",
            {"lightning", "plain"},
            "lightning: the indexer; plain: q·k, with which this is topk"},
           ParamSpec("indexer", {"shared", "per_head"},
                     "shared: one for all attention heads, which reads the queries and keys "
                     "of all; per_head: each attention head has one and chooses for itself")
               .when("scorer", "lightning"),
           ParamSpec("index_heads", 2, "heads of an indexer", 1, 64).when("scorer", "lightning"),
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
      .notes =
          {
              "The paper's indexer reads the layer's input; this one reads the queries and keys of "
              "all heads, which are what an attention has. Its keys pass a layer norm, as the "
              "paper's. Left out: the rotation of the indexer's first channels, the Hadamard "
              "rotation (which changes no product), and the factor of w (which changes no order).",
              "The choice has no gradient. index_query [heads, d, index_heads·index_dim], "
              "index_key "
              "[heads, d, index_dim] and index_weight [heads, d, index_heads], whose products are "
              "summed over heads, start as random projections of q and k that are half the same, "
              "so "
              "that their product grows with q·k, and w = 1 + q·index_weight. --train "
              "mimicry=STEPS "
              "trains them before the training as the paper's warm-up does: by the "
              "Kullback-Leibler "
              "distance of softmax(I) from the mean of the heads' softmax weights, on queries and "
              "keys that stay as they are. Without it they stay as drawn. With "
              "mimicry_until=end too they go on to learn while the model is trained, as in the "
              "paper's second stage: a step of their own after each of the model's, by the same "
              "distance on the chosen keys alone (eq. 4).",
              "indexer=per_head has index_key [d, index_dim], one for all heads, and choices of "
              "each head.",
              "Of equal scores the earlier key is larger. Scores of 0, of keys that no index head "
              "likes, are many. The paper keeps 2048 keys of 64 heads of 128 on 128 attention "
              "heads.",
          },
      .heads_meet =
          [](const Params& params) {
            return params.text("scorer") == "lightning" && params.text("indexer") == "shared";
          },
      .mimicry_if = [](const Params& params) { return params.text("scorer") == "lightning"; }};
}

}  // namespace attn::variants
