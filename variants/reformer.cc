// reformer: softmax attention between positions that a random rotation hashes alike, in sorted
// chunks. Kitaev et al. 2020, arXiv:2001.04451, eqs. 2-5 and appendix A. Time 8·rounds·n·chunk·d,
// memory n·d. Queries and keys are shared: q serves as both, its keys of length one; k is ignored.
#include <algorithm>
#include <cmath>

#include "variants/attention.h"
#include "variants/kernels/bucket_attention.h"
#include "variants/kernels/feature_maps.h"

namespace attn::variants {
namespace {

class Reformer final : public Attention {
 public:
  explicit Reformer(const AttentionConfig& config) : Attention(config) {
    // A number that follows the length would let the future say who shares a bucket.
    const int64_t chunk = params().integer("chunk"), given = params().integer("buckets");
    buckets_ = given > 0 ? given : std::max<int64_t>(4, 2 * ((config.max_len + chunk - 1) / chunk));
    hash_ = HashShape::of(buckets_);
    const int64_t rounds = params().integer("rounds"), directions = hash_.directions();
    rotations_ = Var(random_directions(config.heads, rounds * directions, config.head_dim, false,
                                       rng(config.seed, "reformer.rotations"))
                         .reshaped({config.heads, rounds, directions, config.head_dim}));
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    BucketOptions options = options_of(q.dim(2));
    options.causal = mask.causal;
    options.kv_lengths = mask.kv_lengths;
    return bucket_attention(q, k, v, rotations_.value(), options);
  }

  Cost do_cost(const AttentionShape& shape) const override {
    return bucket_cost(shape, params().integer("rounds"), options_of(shape.q_len));
  }

  BucketOptions options_of(int64_t length) const {
    BucketOptions options{
        .chunk = params().integer("chunk"), .hash = hash_, .one_bucket = buckets_ == 1};
    if (params().text("as") == "paper") return options;
    options.chunks = buckets_;
    options.chunk = (length + buckets_ - 1) / buckets_;
    options.strict = options.unit_keys = false;
    options.scale = std::sqrt(static_cast<double>(config().head_dim));
    return options;
  }

  std::vector<Weight> do_weights() const override { return {{"rotations", rotations_, false}}; }

  int64_t buckets_;
  HashShape hash_;
  Var rotations_;  // [heads, rounds, directions, head_dim]
};

}  // namespace

VariantInfo reformer() {
  return {
      .name = "reformer",
      .family = "hashing or routing",
      .summary = "softmax attention between positions that random rotations hash alike",
      .paper = "Kitaev et al. 2020, arXiv:2001.04451, eqs. 2-5, appendix A",
      .cost_formula =
          "8·rounds·n·chunk·d FLOPs, 2·rounds·n·d·directions of hashing (buckets/2, and about "
          "√buckets above 128 of them); memory n·(d + 2·rounds). as=lra: chunk is n/buckets",
      .traits = {.causal = true, .random = true, .convex = true},
      .params = {{"rounds", 4, "independent hashes, whose keys are united", 1, 256},
                 {"chunk", 64, "positions of a sorted chunk; each sees the one before as well"},
                 {"buckets", 0, "of a hash; 0: two for each chunk of the longest length", 0, 65536},
                 {"as", std::vector<std::string>{"paper", "lra"},
                  "lra: what Long Range Arena runs: logits times √d, keys of any length, no "
                  "bucket or self mask, `buckets` chunks; theirs is rounds=1,buckets=10"}},
      .make = make_as<Reformer>,
      .limit = [](const AttentionShape&) { return std::optional<VariantInfo::Limit>(); },
      .skip_reason = [](const AttentionShape& shape,
                        const Params& params) -> std::optional<std::string> {
        if (shape.causal && params.text("as") == "lra")
          return "as=lra hides nothing: it cannot be causal";
        return std::nullopt;
      }};
}

}  // namespace attn::variants
