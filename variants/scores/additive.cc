// additive: softmax(w·tanh(W_q·q + W_k·k))·V, a hidden layer in place of the dot product. Bahdanau
// et al. 2015, arXiv:1409.0473, appendix A.1.2. Time n²·(3·units + 2·d) FLOPs and n²·units / 4
// divisions, memory n·(d + units).
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/reference/scores.h"
#include "variants/scores/scores.h"

namespace attn::variants {
namespace {

class Additive final : public Attention {
 public:
  // The paper's own start, w = 0, would make every head a mean.
  explicit Additive(const AttentionConfig& config)
      : Attention(config),
        units_(params().integer("units") > 0 ? params().integer("units") : config.head_dim),
        to_query_(glorot_weight("W_q", {config.heads, config.head_dim, units_})),
        to_key_(glorot_weight("W_k", {config.heads, config.head_dim, units_})),
        weight_(normal_weight("w", {config.heads, units_},
                              std::sqrt(2.0 / static_cast<double>(units_ + 1)))) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var queries = matmul(q, to_query_);                            // [.., q_len, units]
    const Var keys = matmul(zero_padding(k, mask.kv_lengths), to_key_);  // [.., kv_len, units]
    return additive_attention(queries, keys, weight_, v, mask);
  }
  Cost do_cost(const AttentionShape& shape) const override { return additive_cost(shape, units_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return additive_decoder(position, capacity,
                            {to_query_.value(), to_key_.value(), weight_.value()});
  }

  int64_t units_;
  Var to_query_, to_key_, weight_;  // [heads, head_dim, units] twice, [heads, units]
};

}  // namespace

VariantInfo additive() {
  return {.name = "additive",
          .family = "other scores",
          .summary = "scores by a hidden layer of tanh in place of the dot product",
          .paper = "Bahdanau et al. 2015, arXiv:1409.0473, appendix A.1.2",
          .cost_formula =
              "n²·(3·units + 2·d) FLOPs and n²·units tanh, causal half; 4·n·d·units to project; "
              "memory n·(d + units)",
          .traits = {.causal = true,
                     .cross = true,
                     .convex = true,
                     .permutable = true,
                     .decode = true,
                     .rowwise = true},
          .params = {{"units", 0, "width of the hidden layer; 0: head_dim", 0, 4096}},
          .make = make_as<Additive>,
          .reference = [](const ReferenceInputs& x) {
            return oracle::additive_attention(x.q, x.k, x.v, x.weights[0], x.weights[1],
                                              x.weights[2], x.visible());
          }};
}

}  // namespace attn::variants
