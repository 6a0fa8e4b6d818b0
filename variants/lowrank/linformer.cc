// linformer: keys and values projected from n rows to `rank` rows, then exact attention:
// softmax(Q(EK)ᵀ/√d)·(FV). Wang et al. 2020, arXiv:2006.04768, eq. 7. Time O(n·rank·d), memory
// O(n·d). A slot mixes all positions: no causal form.
#include <cmath>

#include "core/base/check.h"
#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Linformer final : public Attention {
 public:
  explicit Linformer(const AttentionConfig& config) : Attention(config) {
    project_k_ = draw("projection_k");
    project_v_ = params().flag("share_kv") ? project_k_ : draw("projection_v");
  }

 private:
  // Entries of variance 1/max_len keep projected rows as large as the rows themselves.
  Var draw(const char* name) {
    const Shape shape{params().flag("share_heads") ? 1 : config().heads, params().integer("rank"),
                      config().max_len};
    return normal_weight(name, shape, 1 / std::sqrt(static_cast<double>(config().max_len)));
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
    const int64_t matrices =
        (params().flag("share_heads") ? 1 : shape.heads) * (params().flag("share_kv") ? 1 : 2);
    return projected_cost(shape, params().integer("rank"), matrices);
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
          .reference =
              [](const ReferenceInputs& x) {
                return oracle::linformer(x.q, x.k, x.v, x.weights.front(), x.weights.back(),
                                         x.visible());
              },
          .limit = [](const AttentionShape& shape) -> std::optional<VariantInfo::Limit> {
            return VariantInfo::Limit{.params = {{"rank", shape.kv_len}}, .prepare = set_identity};
          }};
}

}  // namespace attn::variants
