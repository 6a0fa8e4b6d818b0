// routing: softmax attention inside clusters of k-means, whose centroids choose their nearest
// positions and follow them while a model is trained. Roy et al. 2021, arXiv:2003.05997, section
// 4.1. Time 4·n·clusters·d + 4·clusters·window²·d, O(n·√n·d) at the default √n clusters; memory
// n·d.
#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/following.h"
#include "variants/api/variant_info.h"
#include "variants/hashing/hashing.h"
#include "variants/reference/routing.h"

namespace attn::variants {
namespace {

// Not by the length of an input: the future would say who shares a cluster.
int64_t cluster_count(const Params& params, int64_t max_len) {
  const int64_t given = params.integer("clusters");
  return given > 0 ? given
                   : std::max<int64_t>(1, std::lround(std::sqrt(static_cast<double>(max_len))));
}

bool is_balanced(const Params& params) { return params.text("assignment") == "balanced"; }

class Routing final : public Attention, public Following {
 public:
  explicit Routing(const AttentionConfig& config)
      : Attention(config), clusters_(cluster_count(params(), config.max_len)) {
    const Tensor start = Tensor::normal({config.heads, clusters_, config.head_dim},
                                        rng(config.seed, "routing.centroids"));
    for (int64_t row = 0; row < config.heads * clusters_; ++row) {
      const std::span<real> one = start.values().subspan(static_cast<size_t>(row * config.head_dim),
                                                         static_cast<size_t>(config.head_dim));
      real squares = 0;
      for (const real x : one) squares += x * x;
      for (real& x : one) x /= std::sqrt(squares);
    }
    centroids_ = moved_weight("centroids", start);
    gain_ = Var(Tensor::full({config.head_dim}, 1));
    bias_ = Var(Tensor::zeros({config.head_dim}));
    window_ = params().integer("window");
    if (window_ == 0 && !is_balanced(params()))
      window_ = (config.max_len + clusters_ - 1) / clusters_;
  }

  void follow(const Tensor& q, const Tensor& k, const Mask& mask) const override {
    const double decay = params().number("centroid_decay");
    if (decay == 1) return;
    const NoGrad no_grad;
    const Tensor x = layer_norm(zero_padding(Var(q), mask.kv_lengths), gain_, bias_).value();
    const Tensor y = is_balanced(params())
                         ? layer_norm(zero_padding(Var(k), mask.kv_lengths), gain_, bias_).value()
                         : x;  // queries are the keys
    centroids_.set_value(moved_centroids(x, y, centroids_.value(), decay, mask.kv_lengths));
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var x = layer_norm(q, gain_, bias_);
    if (!is_balanced(params())) return nearest_attention(x, v, centroids_.value(), window_, mask);
    const Var keys = layer_norm(zero_padding(k, mask.kv_lengths), gain_, bias_);
    return balanced_attention(x, keys, v, centroids_.value(), window_, mask);
  }
  Cost do_cost(const AttentionShape& shape) const override {
    if (is_balanced(params())) return balanced_cost(shape, clusters_, window_);
    return {.declared = false};  // clusters are as large as the data make them
  }

  int64_t clusters_, window_ = 0;
  Var centroids_;  // [heads, clusters, head_dim]
  Var gain_, bias_;
};

oracle::Array routing_reference(const ReferenceInputs& x) {
  const int64_t given = x.params().integer("clusters"), n = x.config.max_len;
  const int64_t clusters = given > 0 ? given : std::lround(std::sqrt(static_cast<double>(n)));
  const oracle::Array centroids = oracle::reshaped(x.weights[0], 1, x.q.heads, clusters, x.q.dim);
  const int64_t window = x.params().integer("window");
  if (x.params().text("assignment") == "balanced")
    return oracle::balanced_routing(x.q, x.k, x.v, centroids, window, x.mask.kv_lengths, x.rows);
  return oracle::nearest_routing(x.q, x.v, centroids,
                                 window > 0 ? window : (n + clusters - 1) / clusters, x.visible());
}

}  // namespace

VariantInfo routing() {
  return {
      .name = "routing",
      .family = "hashing or routing",
      .summary = "softmax attention inside clusters whose centroids choose their positions",
      .paper = "Roy et al. 2021 (Routing Transformer), arXiv:2003.05997, section 4.1",
      .cost_formula =
          "4·n·clusters·d + 4·clusters·window²·d FLOPs, and a selection of window out "
          "of n for each cluster; assignment=nearest 2·n·clusters·d + at most 8·n·window·d; memory "
          "n·d",
      .traits = {.causal = true, .random = true, .convex = true},
      .params = {{"clusters", 0, "centroids of each head; 0: nearest to √n", 0, 65536},
                 {"window", 0,
                  "positions of a cluster, or of its chunks; 0: n/clusters, rounded up", 0, 65536},
                 {"assignment",
                  {"balanced", "nearest"},
                  "balanced: each centroid takes its `window` nearest queries and keys; nearest: "
                  "each position goes to its nearest centroid, queries are the keys"},
                 {"centroid_decay", 0.999,
                  "what centroids keep of themselves in a step of training; 1: they stay as drawn",
                  0.0, 1.0}},
      .make = make_as<Routing>,
      .reference = routing_reference,
      .skip_reason = [](const AttentionShape& shape,
                        const Params& params) -> std::optional<std::string> {
        if (!shape.causal || !is_balanced(params)) return std::nullopt;
        return "assignment=balanced cannot be causal: later positions push earlier ones out of a "
               "cluster; assignment=nearest can";
      },
      .reads = [](const Params& params) { return VariantInfo::Reads{.keys = is_balanced(params)}; },
      .notes =
          {"Queries and keys are normalised as by a layer norm without gain and bias; logits are "
           "divided by √d, which the authors' code does not do. A position of several clusters "
           "gets the mean of their results, one of none gets zeros.",
           "Centroids start as random directions. After each step of a training (-t) they move "
           "by online k-means, as the paper's do: to centroid_decay times themselves and the "
           "rest times the mean of their nearest positions, half of queries and half of keys, "
           "and back to length 1. Speed and fidelity are measured with centroids as drawn. The "
           "paper's commitment loss is left out.",
           "assignment=nearest: members of a cluster, ascending, in chunks of `window` that see "
           "the chunk before too; this alone hides the future, for the paper's choice of "
           "members, causal or not, reads the whole sequence. `clusters=0` and its `window=0` "
           "follow the longest length that the model is built for. What it costs is counted "
           "while it runs, not declared, for the data make the clusters: 2·n·clusters·d FLOPs, "
           "and at most 8·n·window·d."},
      .convex_if = [](const Params& params, bool) { return !is_balanced(params); }};
}

}  // namespace attn::variants
