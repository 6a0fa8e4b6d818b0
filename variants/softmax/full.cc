// full: softmax(QKᵀ/√d)·V over every visible key. Vaswani et al. 2017, arXiv:1706.03762, eq. 1.
// Time 4·n²·d FLOPs (causal: half). Tiled: memory n·d, online softmax of arXiv:2205.14135;
// materialized: n² weights a head.
#include "core/base/check.h"
#include "variants/api/distance_bias.h"
#include "variants/api/forgetting.h"
#include "variants/api/variant_info.h"
#include "variants/reference/eviction.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Full final : public Attention, public DistanceBiased, public Forgetting {
 public:
  explicit Full(const AttentionConfig& config)
      : Attention(config),
        tiled_(params().text("kernel") == "tiled"),
        eviction_(eviction_of(params(), config.seed)) {}

  Var biased_forward(const Var& q, const Var& k, const Var& v, const Mask& mask,
                     const Var& table) const override {
    check_mask(mask, q.dim(0), q.dim(2), k.dim(2));
    ATTN_CHECK(!mask.edges, "a bias of each distance takes no edges");
    return distance_softmax_attention(q, k, v, table, options_of(mask));
  }
  std::unique_ptr<Decoder> biased_decoder(const Shape& position, int64_t capacity,
                                          const Tensor& distances) const override {
    ATTN_CHECK(!forgets(), "evict={} takes no bias of distances", name_of(eviction_.method));
    return distance_softmax_decoder(position, capacity, -1, distances);
  }

  std::optional<int64_t> forgets_from() const override { return eviction_.forgets_from(); }
  bool forgets_prompts_alone() const override { return eviction_.at_prompt_alone; }
  bool sums_over_heads(int64_t kv_heads) const override {
    return eviction_.sums_over_heads(config().heads, kv_heads);
  }
  oracle::Array step_answers(const ReferenceInputs& x, const DecodeSteps& steps) const override {
    const auto draw = [this](int64_t head, int64_t position) {
      return eviction_draw(eviction_.seed, head, position);
    };
    return oracle::evicted_attention(x.q, x.k, x.v, steps.is_step, steps.kv_heads,
                                     {.method = params().text("evict"),
                                      .budget = params().number("budget"),
                                      .at_prompt = params().text("when") == "prompt",
                                      .draw = draw},
                                     x.rows);
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    if (mask.edges) return edge_attention(q, k, v, mask);  // of either kernel: time O(edges)
    const SoftmaxOptions options = options_of(mask);
    return tiled_ ? softmax_attention(q, k, v, options) : materialized_attention(q, k, v, options);
  }
  BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                     const BFloat16Tensor& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask));
  }
  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = tiled_ ? softmax_cost(shape) : materialized_cost(shape);
    if (forgets()) cost.state_bytes = static_cast<double>(eviction_state_bytes(eviction_, shape));
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    if (forgets()) return evicting_softmax_decoder(position, capacity, eviction_);
    return softmax_decoder(position, capacity);
  }
  std::unique_ptr<Decoder> do_bfloat16_decoder(const Shape& position,
                                               int64_t capacity) const override {
    if (forgets()) return nullptr;  // its cache is of float32
    return bfloat16_softmax_decoder(position, capacity);
  }
  std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                             CacheType cache) const override {
    ATTN_CHECK(!forgets(), "a decoder that forgets caches in float32, not in {}", name_of(cache));
    return typed_softmax_decoder(position, capacity, cache);
  }

  bool forgets() const { return eviction_.method != Evict::none; }
  static SoftmaxOptions options_of(const Mask& mask) {
    return {.causal = mask.causal, .kv_lengths = mask.kv_lengths};
  }

  bool tiled_;
  Eviction eviction_;
};

std::vector<ParamSpec> params_of_full() {
  std::vector<ParamSpec> all = eviction_params();
  all.insert(all.begin(), {"kernel",
                           {"tiled", "materialized"},
                           "tiled: never holds an n×n matrix; materialized: the textbook one"});
  return all;
}

}  // namespace

VariantInfo full() {
  return {
      .name = "full",
      .family = "exact",
      .summary = "scaled dot-product softmax attention, the exact reference",
      .paper = "Vaswani et al. 2017, arXiv:1706.03762, eq. 1",
      .cost_formula =
          "4·n²·d FLOPs, causal 2·n·(n+6)·d; memory n·d; materialized 4·n²·d and n² + n·d",
      .traits = {.exact = true,
                 .causal = true,
                 .cross = true,
                 .convex = true,
                 .permutable = true,
                 .decode = true,
                 .typed_cache = true,
                 .edges = true,
                 .rowwise = true,
                 .bfloat16 = true,
                 .distance_bias = true},
      .params = params_of_full(),
      .make = make_as<Full>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::softmax_attention(x.q, x.k, x.v, x.visible());
          },
      .skip_reason = why_no_eviction,
      .no_decoder = [](const Params& params) -> std::optional<std::string> {
        if (params.text("kernel") == "tiled") return std::nullopt;
        return "decodes as kernel=tiled: a row of weights needs no matrix";
      },
      .notes = {"With a bias of distances (positions alibi, t5, kerple of a model) both kernels "
                "are the tiled one.",
                "evict changes decoding alone: forward and gradients are those of exact attention. "
                "A step sees what is kept and its own position. A prompt is seen whole by its "
                "queries and ends with the first step. Positions stay what they were: sinks does "
                "not number the kept ones anew, as StreamingLLM does. snapkv: the last 32 queries "
                "vote, or half the budget. With query heads that share keys, h2o and snapkv add up "
                "their weights; in quest each chooses its own pages."},
      .bfloat16_if = [](const Params& params) { return params.text("kernel") == "tiled"; }};
}

}  // namespace attn::variants
