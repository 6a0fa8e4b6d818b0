// yoso: weights are the share of random sign hashes in which a query and a key agree (YOSO,
// Bernoulli sampling), or its expectation (1 - arccos(q̂·k̂)/π)^bits; outputs at length one. Zeng et
// al. 2021, arXiv:2111.09714. Time 4·n·hashes·bits·d + 2·n·hashes·d, expected 4·n²·d.
#include "core/base/check.h"
#include "variants/api/variant_info.h"
#include "variants/hashing/hashing.h"
#include "variants/normalisers/normalisers.h"
#include "variants/reference/collisions.h"

namespace attn::variants {
namespace {

constexpr RowScale kUnit{.mean = false, .epsilon = 1e-24};

bool is_sampled(const Params& params) { return params.text("form") == "sampled"; }

class Yoso final : public Attention {
 public:
  explicit Yoso(const AttentionConfig& config)
      : Attention(config), options_{.bits = params().integer("bits")} {
    if (!is_sampled(params())) {
      rule_ = std::make_shared<CollisionWeights>(options_.bits, config.head_dim);
      return;
    }
    hashes_ = params().integer("hashes");
    planes_ = weight("planes",
                     Tensor::normal({config.heads, hashes_ * options_.bits, config.head_dim},
                                    rng(config.seed, "yoso.planes")),
                     false);
    options_.longest = SignHashes::longest_of(planes_.value());
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return scaled_rows(sums(q, k, v, mask), {}, kUnit);
  }
  Var sums(const Var& q, const Var& k, const Var& v, const Mask& mask) const {
    const bool hashed = rule_ == nullptr;
    if (hashed && !recording({q, k}))  // rows at length one are for gradients alone
      return collision_attention(q.value(), k.value(), q, k, v, planes_.value(), options_, mask);
    const Var unit_q = scaled_rows(q, {}, kUnit),
              unit_k = scaled_rows(k, {}, kUnit, mask.kv_lengths);
    return hashed ? collision_attention(q.value(), k.value(), unit_q, unit_k, v, planes_.value(),
                                        options_, mask)
                  : strip_attention(unit_q, unit_k, v, mask, rule_);
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return rule_ ? expected_collision_cost(shape, *rule_)
                 : collision_cost(shape, hashes_, options_.bits);
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    std::unique_ptr<Decoder> sums =
        rule_ ? scaled_decoder(position, strip_decoder(position, capacity, rule_), {kUnit, {}, {}})
              : collision_decoder(position, capacity, planes_.value(), options_);
    return sums ? normed_decoder(position, std::move(sums), kUnit, {}, 1) : nullptr;
  }

  CollisionOptions options_;
  int64_t hashes_ = 0;
  Var planes_;    // [heads, hashes·bits, head_dim]; undefined: form=expected
  RowRule rule_;  // of form=expected
};

constexpr double kLeast = 1e-24;  // beside the squares of a row, which may be zeros

oracle::Array yoso_reference(const ReferenceInputs& x) {
  const int64_t bits = x.params().integer("bits");
  return oracle::unit_rows(
      is_sampled(x.params()) ? oracle::collided(x.q, x.k, x.v, x.weights[0], bits, x.visible())
                             : oracle::expected_collided(x.q, x.k, x.v, bits, kLeast, x.visible()),
      kLeast);
}

oracle::Array yoso_surrogate(const ReferenceInputs& x, const ReferenceInputs& at) {
  return oracle::unit_rows(oracle::collided_near({x.q, x.k}, {at.q, at.k}, x.v, at.weights[0],
                                                 at.params().integer("bits"), kLeast, x.visible()),
                           kLeast);
}

// Where nothing collides, all outputs are zeros: of random rows, one pair in 2^bits does in a hash.
std::optional<std::string> too_few(const AttentionShape&, const Params& params) {
  const int64_t bits = params.integer("bits");
  const int64_t least = ((int64_t{1} << bits) + 349) / 350;
  if (!is_sampled(params) || params.integer("hashes") >= least) return std::nullopt;
  return fmt::format("{} hashes of {} bits hardly ever collide; at least {} do",
                     params.integer("hashes"), bits, least);
}

}  // namespace

VariantInfo yoso() {
  return {
      .name = "yoso",
      .family = "hashing or routing",
      .summary = "weights are the share of random sign hashes in which query and key agree",
      .paper = "Zeng et al. 2021 (YOSO), arXiv:2111.09714",
      .cost_formula =
          "4·n·hashes·bits·d FLOPs and 2·n·hashes·d additions, memory 2·n·d, state "
          "hashes·2^bits·d; form=expected 4·n²·d FLOPs, memory 4·n·d",
      .traits = {.causal = true,
                 .cross = true,
                 .linear_time = true,
                 .random = true,
                 .permutable = true,
                 .decode = true,
                 .rowwise = true,
                 .nonlinear = true,
                 .surrogate_gradients = true},
      .params = {ParamSpec("hashes", 32, "random hashes, whose collisions are averaged", 3, 4096)
                     .when("form", "sampled"),
                 {"bits", 10, "signs of a hash: weights are a power of that many", 1,
                  SignHashes::kMostBits},
                 {"form",
                  {"sampled", "expected"},
                  "sampled: collisions of hashes; expected: their expectation, quadratic"}},
      .make = make_as<Yoso>,
      .reference = yoso_reference,
      .skip_reason = too_few,
      .notes =
          {"form=sampled: gradients of queries and keys are the authors' surrogate, bits/2·weight "
           "for the derivative of a weight with respect to q̂·k̂, with the hashes of the forward; "
           "those of values are exact. All gradients of form=expected are, and its time is "
           "quadratic.",
           "Planes are drawn once; the authors draw others at each step. Their convolution of "
           "values is left out. A query that collides with no key gets zeros.",
           "Rows are divided by √(|x|² + 1e-24). form=expected: products within four units in the "
           "last place of ±1 count as ±1, with a gradient of 0, and angles near 0 are good to 5e-4 "
           "in float. The authors' second version multiplies products by 0.98 instead."},
      .surrogate = yoso_surrogate,
      .surrogate_if = is_sampled};
}

}  // namespace attn::variants
