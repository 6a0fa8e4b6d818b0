// reformer: softmax attention between positions that a random rotation hashes alike, in sorted
// chunks. Kitaev et al. 2020, arXiv:2001.04451, eqs. 2-5 and appendix A. Time 8·rounds·n·chunk·d,
// memory n·d. Queries and keys are shared: q serves as both, its keys of length one; k is ignored.
#include <algorithm>
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/hashing/hashing.h"
#include "variants/reference/reformer.h"

namespace attn::variants {
namespace {

// Not by the length of an input: the future would say who shares a bucket.
int64_t buckets_of(const Params& params, int64_t max_len) {
  const int64_t chunk = params.integer("chunk"), buckets = params.integer("buckets");
  return buckets > 0 ? buckets : std::max<int64_t>(4, 2 * ((max_len + chunk - 1) / chunk));
}

class Reformer final : public Attention {
 public:
  explicit Reformer(const AttentionConfig& config) : Attention(config) {
    const int64_t chunk = params().integer("chunk"), buckets = buckets_of(params(), config.max_len);
    options_ = {.chunk = chunk, .hash = HashShape::of(buckets), .one_bucket = buckets == 1};
    if (params().text("as") == "lra") {
      options_.masked = options_.unit_keys = false;
      options_.chunks = buckets;
      options_.scale = std::sqrt(static_cast<double>(config.head_dim));
    }
    const Shape shape{config.heads, params().integer("rounds"), options_.hash.directions(),
                      config.head_dim};
    rotations_ =
        weight("rotations", Tensor::normal(shape, rng(config.seed, "reformer.rotations")), false);
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return bucket_attention(q, k, v, rotations_.value(), options_, mask);
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return bucket_cost(shape, rotations_.dim(1), options_);
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return bucket_decoder(position, capacity, rotations_.value(), options_);
  }

  BucketOptions options_;
  Var rotations_;  // [heads, rounds, directions, head_dim]
};

oracle::Array reformer_reference(const ReferenceInputs& x) {
  const Params& p = x.params();
  const int64_t chunk = p.integer("chunk"), rounds = p.integer("rounds");
  const int64_t buckets = buckets_of(p, x.config.max_len);
  const HashShape hash = HashShape::of(buckets);
  const oracle::Array rotations =
      oracle::reshaped(x.weights[0], 1, x.q.heads, rounds * hash.directions(), x.q.dim);
  const oracle::Hashing hashing =
      oracle::hashing(x.q, rotations, rounds, chunk, hash.first, hash.second, buckets == 1);
  if (p.text("as") == "lra") return oracle::reformer_lra(x.q, x.v, hashing, buckets, x.visible());
  return oracle::reformer(x.q, x.v, hashing, x.visible());
}

}  // namespace

VariantInfo reformer() {
  return {
      .name = "reformer",
      .family = "hashing or routing",
      .summary = "softmax attention between positions that random rotations hash alike",
      .paper = "Kitaev et al. 2020, arXiv:2001.04451, eqs. 2-5, appendix A",
      .cost_formula =
          "8·rounds·n·chunk·d FLOPs, 2·rounds·n·d·directions of hashing (buckets/2, and about "
          "√buckets above 128 of them); memory n·(d + 2·rounds); as=lra: chunk is n/buckets",
      .traits = {.causal = true, .random = true, .convex = true, .decode = true},
      .params = {{"rounds", 4, "independent hashes, whose keys are united", 1, 64},
                 ParamSpec("chunk", 64, "positions of a sorted chunk, which sees one before too", 1,
                           16384)
                     .when("as", "paper"),
                 {"buckets", 0, "of a hash; 0: two for each chunk of the longest length", 0, 65536},
                 {"as", {"paper", "lra"}, "lra: chunks without masks, logits times √d"}},
      .make = make_as<Reformer>,
      .reference = reformer_reference,
      .skip_reason =
          [](const AttentionShape& shape, const Params& params) {
            if (!shape.causal || params.text("as") != "lra") return std::optional<std::string>();
            return std::optional<std::string>("as=lra hides nothing: it cannot be causal");
          },
      .reads = [](const Params&) { return VariantInfo::Reads{.keys = false}; },
      .notes =
          {"Queries are the keys, at length one; keys are neither read nor projected. Logits are "
           "not "
           "divided by √d, as in the authors' code. Causal, a query sees the last `chunk` earlier "
           "members of its bucket, for sorted chunks would move with the future. `buckets=0` "
           "follows "
           "the longest length that the model is built for, training's or `stretch`'s.",
           "as=lra: what Long Range Arena runs: logits times √d, keys of any length, no bucket or "
           "self mask, `buckets` chunks; theirs is rounds=1,buckets=10. Left out: rows of zeros "
           "that "
           "they append and attend to, and a look-back from one round into the one before."}};
}

}  // namespace attn::variants
