// sinkhorn: each block of queries sees its own block of keys and one that a learned, doubly
// stochastic matrix sorts to its place. Tay et al. 2020, arXiv:2002.11296, section 3: R_I =
// relu(Σ_I q)·W (q in the place of the first layer's output), S = Sinkhorn(exp(R / temperature)),
// without Gumbel noise. Time 8·n·block·d + 4·n²/block·d, memory n·d + (n/block)².
#include "core/base/check.h"
#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/reference/sinkhorn.h"
#include "variants/sorting/sorting.h"

namespace attn::variants {
namespace {

class Sinkhorn final : public Attention {
 public:
  explicit Sinkhorn(const AttentionConfig& config)
      : Attention(config), block_(params().integer("block")) {
    if (params().text("as") == "lra") return;  // whose sorting has no effect
    const int64_t blocks = (config.max_len + block_ - 1) / block_;
    sort_ = glorot_weight("sort", {config.heads, config.head_dim, blocks});
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    const int64_t n = q.dim(2);
    ATTN_CHECK(n <= config().max_len, "sinkhorn was built for {} positions at most, got {}",
               config().max_len, n);
    if (!sort_.defined()) return group_and_run_attention(q, k, v, block_, lengths);
    const Var log_sort = balanced(
        matmul(relu(block_sums(q, block_, lengths)), slice(sort_, 2, 0, (n + block_ - 1) / block_)),
        params().number("temperature"), params().integer("iterations"), block_, n, lengths);
    return sorted_attention(q, k, v, log_sort, block_, lengths);
  }

  Cost do_cost(const AttentionShape& shape) const override {
    return sort_.defined() ? sorted_cost(shape, block_) : group_and_run_cost(shape, block_);
  }

  int64_t block_;
  Var sort_;  // [heads, head_dim, blocks of max_len]; undefined as=lra
};

}  // namespace

VariantInfo sinkhorn() {
  return {
      .name = "sinkhorn",
      .family = "hashing or routing",
      .summary = "each block of queries sees its own keys and a block sorted to it",
      .paper = "Tay et al. 2020, arXiv:2002.11296, section 3",
      .cost_formula =
          "8·n·block·d FLOPs of attention, 4·n²/block·d of sorting; memory 10·n·d and (n/block)²; "
          "as=lra 8·n·block·d FLOPs, memory 3·n·d",
      .traits = {.linear_memory = false, .fixed_length = true, .convex = true},
      .params = {{"block", 64, "positions of a block of queries and keys", 1, 65536},
                 ParamSpec("temperature", 0.75, "of the scores before balancing", 0.02, 1e3)
                     .when("as", "paper"),
                 ParamSpec("iterations", 8, "normalisations of columns, then rows", 1, 1000)
                     .when("as", "paper"),
                 {"as",
                  {"paper", "lra"},
                  "lra: Long Range Arena's groups and sums, nothing sorted; theirs is block=50"}},
      .make = make_as<Sinkhorn>,
      .reference =
          [](const ReferenceInputs& x) {
            const Params& p = x.params();
            if (p.text("as") == "lra")
              return oracle::sinkhorn_lra(x.q, x.k, x.v, p.integer("block"), x.visible());
            return oracle::sinkhorn(
                x.q, x.k, x.v, x.weights[0],
                {p.integer("block"), p.integer("iterations"), p.number("temperature")},
                x.visible());
          },
      // One block is sorted to itself: every key counts twice.
      .limit = limit_at_length("block", {{"as", std::string("paper")}}),
      .notes = {"R_I = relu(Σ q over block I)·sort, sort [heads, head_dim, blocks], without Gumbel "
                "noise. The last normalisation is of rows, which keeps outputs convex; the "
                "authors end with columns.",
                "as=lra: Long Range Arena's code sorts nothing: a query sees the keys n/block "
                "apart from it and, under a second softmax, which it adds, sums of keys and values "
                "over runs of n/block; padding is hidden, which their code confuses."},
      .convex_if = [](const Params& params, bool) { return params.text("as") == "paper"; }};
}

}  // namespace attn::variants
