// linformer: keys and values projected from n rows to `rank` rows, then exact attention:
// softmax(Q(EK)ᵀ/√d)·(FV). Wang et al. 2020, arXiv:2006.04768, eq. 7. Time O(n·rank·d), memory
// O(n·d). A slot mixes all positions: no causal form.
#include <cmath>

#include "core/check.h"
#include "variants/attention.h"
#include "variants/kernels/sequence_projection.h"
#include "variants/kernels/softmax_attention.h"

namespace attn::variants {
namespace {

class Linformer final : public Attention {
 public:
  explicit Linformer(const AttentionConfig& config) : Attention(config) {
    project_k_ = draw("projection_k");
    project_v_ = params().flag("share_kv") ? project_k_ : draw("projection_v");
  }

 private:
  Var draw(const char* name)
      const {  // entries of variance 1/max_len keep projected rows as large as the rows themselves
    const Shape shape{params().flag("share_heads") ? 1 : config().heads, params().integer("rank"),
                      config().max_len};
    const double scale = 1 / std::sqrt(static_cast<double>(config().max_len));
    return Var(Tensor::normal(shape, rng(config().seed, name), scale), true);
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    ATTN_CHECK(k.dim(2) <= config().max_len, "linformer was built for {} positions at most, got {}",
               config().max_len, k.dim(2));
    const Var keys =
        project_sequence(project_k_, k, mask.kv_lengths);  // [batch, heads, rank, head_dim]
    const Var values =
        project_sequence(project_v_, v, mask.kv_lengths);  // [batch, heads, rank, head_dim]
    return softmax_attention(q, keys, values);
  }

  Cost do_cost(const AttentionShape& shape) const override {
    AttentionShape projected = shape;
    projected.kv_len = params().integer("rank");
    const double slots =
        static_cast<double>(shape.batch * shape.heads * projected.kv_len * shape.head_dim);
    Cost cost = softmax_cost(projected);
    const double projections = 4 * slots * static_cast<double>(shape.kv_len);
    cost.flops += projections;
    cost.backward_flops += 2 * projections;
    const int64_t matrices =
        (params().flag("share_heads") ? 1 : shape.heads) * (params().flag("share_kv") ? 1 : 2);
    cost.bytes += sizeof(real) * static_cast<double>(shape.kv_len) *
                  static_cast<double>(2 * shape.batch * shape.heads * shape.head_dim +
                                      matrices * projected.kv_len);
    cost.peak_bytes += 2 * sizeof(real) * slots;
    cost.state_bytes = 0;
    return cost;
  }

  std::vector<Weight> do_weights() const override {
    if (params().flag("share_kv")) return {{"projection_k", project_k_}};
    return {{"projection_k", project_k_}, {"projection_v", project_v_}};
  }

  Var project_k_, project_v_;  // [heads or 1, rank, max_len]
};

void set_identity(const Attention& attention) {
  for (const Weight& weight : attention.weights()) {
    const Shape shape = weight.value.shape();
    Tensor identity = Tensor::zeros(shape);
    for (int64_t i = 0; i < shape.size(); ++i)
      if (i / shape[2] % shape[1] == i % shape[2]) identity[i] = 1;
    weight.value.set_value(identity);
  }
}

}  // namespace

VariantInfo linformer() {
  return {.name = "linformer",
          .family = "low rank",
          .summary = "keys and values projected to a fixed number of rows by learned matrices",
          .paper = "Wang et al. 2020, arXiv:2006.04768, eq. 7",
          .cost_formula = "8·n·rank·d FLOPs (projections 4, attention 4); memory n·d + 2·rank·d",
          .traits = {.cross = true, .linear_time = true, .fixed_length = true, .rowwise = true},
          .params = {{"rank", 64, "rows that keys and values are projected to"},
                     {"share_heads", true, "one projection for all heads"},
                     {"share_kv", false, "one projection for keys and values"}},
          .make = make_as<Linformer>,
          .limit = [](const AttentionShape& shape) -> std::optional<VariantInfo::Limit> {
            if (shape.causal) return std::nullopt;
            return VariantInfo::Limit{.params = {{"rank", shape.kv_len}}, .prepare = set_identity};
          },
          .skip_reason = {}};
}

}  // namespace attn::variants
