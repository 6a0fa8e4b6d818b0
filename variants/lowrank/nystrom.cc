// nystrom: softmax(QK̃ᵀ)·softmax(Q̃K̃ᵀ)⁺·softmax(Q̃Kᵀ)·V with the means Q̃, K̃ of `landmarks` segments
// of queries and keys. Xiong et al. 2021, arXiv:2102.03902, eqs. 10 to 13. Time
// 8·n·landmarks·d + 8·iterations·landmarks³, memory n·d; evaluated from the right.
#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/nystrom.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

using KeyLengths = std::vector<int64_t>;

class NystromAttention final : public Attention {
 public:
  explicit NystromAttention(const AttentionConfig& config)
      : Attention(config),
        landmarks_(params().integer("landmarks")),
        steps_(params().integer("iterations")),
        kernel_(params().integer("convolution")) {
    if (kernel_ == 0) return;
    filter_ = normal_weight("filter", {config.heads, kernel_},
                            1 / std::sqrt(static_cast<double>(kernel_)));
  }

 private:
  // What a landmark's key stands for [batch, heads, m, dim].
  Var landmark_values(const Var& q, const Var& of_k, const Var& k, const Var& v,
                      const KeyLengths& lengths, const KeyLengths& used) const {
    const Var of_q = segment_means(q, of_k.dim(2), lengths);
    Var weights = landmark_weights(of_q, of_k, used);
    if (steps_ > 0) weights = iterated_inverse(weights, steps_);
    const Var read = softmax_attention(of_q, k, v, {.kv_lengths = lengths});
    return steps_ > 0 ? matmul(weights, read) : exact_inverse_product(weights, read, used);
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const KeyLengths& lengths = mask.kv_lengths;
    const Var of_k = segment_means(k, std::min(landmarks_, k.dim(2)), lengths);
    KeyLengths used;
    for (const int64_t length : lengths) used.push_back(std::min(length, of_k.dim(2)));
    const Var values = landmark_values(q, of_k, k, v, lengths, used);
    const Var out = softmax_attention(q, of_k, values, {.kv_lengths = used});
    return kernel_ > 0 ? add(out, head_convolution(v, filter_, lengths)) : out;
  }

  Cost do_cost(const AttentionShape& shape) const override {
    return landmark_cost(shape, landmarks_, steps_, kernel_);
  }

  int64_t landmarks_, steps_, kernel_;
  Var filter_;  // [heads, kernel]; undefined: no convolution
};

}  // namespace

VariantInfo nystrom() {
  return {
      .name = "nystrom",
      .family = "low rank",
      .summary = "softmax weights by the Nyström method, through landmarks of queries and keys",
      .paper = "Xiong et al. 2021, arXiv:2102.03902, eqs. 10 to 13",
      .cost_formula =
          "8·n·landmarks·d + 8·iterations·landmarks³ FLOPs, 2·n·convolution·d if any; "
          "memory n·d + 5·landmarks²",
      .traits = {.linear_time = true},
      .params =
          {{"landmarks", 64, "segments of the sequence, each with its mean", 1, 65536},
           {"iterations", 6,
            "of the pseudo-inverse; 0: the exact one in double, which amplifies what is nearly "
            "singular",
            0, 1000},
           {"convolution", 0,
            "positions of a convolution of the values, added to the output: one filter a "
            "head; 0: none, the paper's models have 33 or 35",
            0, 65535}},
      .make = make_as<NystromAttention>,
      .reference =
          [](const ReferenceInputs& x) {
            const Params& p = x.params();
            return oracle::nystrom(x.q, x.k, x.v,
                                   {p.integer("landmarks"), p.integer("iterations"),
                                    p.integer("convolution") > 0 ? &x.weights[0] : nullptr},
                                   x.mask.kv_lengths, x.rows);
          },
      .limit = [](const AttentionShape& shape) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.params = {{"landmarks", shape.kv_len},
                                             {"iterations", int64_t{0}},
                                             {"convolution", int64_t{0}}},
                                  .tolerance = 1e-4};
      },
      .skip_reason = [](const AttentionShape&, const Params& params) -> std::optional<std::string> {
        const int64_t kernel = params.integer("convolution");
        if (kernel == 0 || kernel % 2 == 1) return std::nullopt;
        return "an even convolution has no middle";
      },
      .notes =
          {"Segments divide the valid positions of each sequence, their sizes differ by one "
           "at most, and padding is in no mean. A sequence shorter than `landmarks` has as "
           "many landmarks as positions; popular code then computes softmax attention.",
           "The iteration starts from each matrix's own norms. Popular code takes the largest "
           "norm of the whole batch, so that an output depends on its batch mates.",
           "After 6 iterations rows of weights sum to one up to about 1e-2, and weights may be "
           "negative. With few landmarks the iteration errs less than the exact inverse.",
           "iterations=0: where weights between landmarks are nearly singular, rounding errors "
           "grow "
           "with the inverse, and `check` is red.",
           "filter [heads, convolution] is drawn at random, and is no part of the "
           "approximation: it is off unless asked for."}};
}

}  // namespace attn::variants
