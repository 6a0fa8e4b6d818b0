// path: PaTH: softmax attention whose position code is a product of Householder-like maps that the
// data give. Yang et al. 2025, arXiv:2505.16381, eqs. 2 and 5: logits q_i·H_i·…·H_{j+1}·k_jᵀ/√d,
// H_s = I - β_s·w_sᵀ·w_s, β = 2·σ(beta), w of length 1. Maps of a chunk become one (UT transform).
// Time n²·(2·d + d²/64) and about 22·64·n·d in chunks, memory n·(8·d + 5·64).
#include <array>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/key_rows.h"
#include "variants/chunked/path_attention.h"
#include "variants/chunked/path_decoder.h"
#include "variants/chunked/unit_triangle.h"
#include "variants/reference/path.h"

namespace attn::variants {
namespace {

class Path final : public GatedAttention {
 public:
  explicit Path(const AttentionConfig& config) : GatedAttention(config) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    const int64_t batch = q.dim(0), heads = q.dim(1), len = q.dim(2), dim = q.dim(3);
    const PathChunks sizes(len);
    const int64_t chunk = sizes.chunk, chunks = sizes.chunks;
    const auto cut = [&](const Var& x) {  // [batch·heads, chunks, chunk, width]
      const int64_t width = x.dim(3), more = chunks * chunk - len;
      const Var whole =
          more == 0 ? x : concat(std::array{x, Var(Tensor::zeros({batch, heads, more, width}))}, 2);
      return reshape(whole, {batch * heads, chunks, chunk, width});
    };
    const Var lower = lower_triangle(chunk, false), strict = lower_triangle(chunk, true);
    const Var queries = cut(scale(q, 1 / std::sqrt(static_cast<double>(dim))));
    const Var keys = cut(zero_padding(k, lengths));
    const Var w = cut(unit_rows(gates[0], 1, lengths));
    // 0 in the padding: H = I there.
    const Var beta = zero_padding(scale(sigmoid(zero_padding(gates[1], lengths)), 2), lengths);
    const Var scaled = multiply(w, cut(beta));  // β·w, [batch·heads, chunks, chunk, dim]
    // [.., chunk, chunk] from here on.
    const Var inverse = unit_triangle_inverse(matmul(scaled, w, false, true));
    const Var passed = matmul(multiply(matmul(queries, w, false, true), lower), inverse);
    const Var erased = multiply(matmul(scaled, keys, false, true), strict);
    const Var near = subtract(matmul(queries, keys, false, true), matmul(passed, erased));
    const Var back = matmul(inverse, w, true);  // Tᵀ·W, [.., chunk, dim]
    const PathInputs inputs = {
        .q = subtract(queries, matmul(passed, scaled)),
        .k = subtract(keys, matmul(erased, back, true)),
        .v = cut(v),
        .maps = add(scale(matmul(w, matmul(inverse, scaled), true), -1), identity_matrix(dim)),
        .near = near};
    const Var out =
        reshape(path_attention(inputs, len, lengths), {batch, heads, chunks * chunk, dim});
    return chunks * chunk == len ? out : slice(out, 2, 0, len);
  }

  Cost do_cost(const AttentionShape& shape) const override { return path_cost(shape); }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return path_decoder(position, capacity);
  }
};

std::vector<GateInput> path_gates(const AttentionConfig& config) {
  return {{.name = "w",
           .help = "the direction that a position reflects, before it gets length 1",
           .width = config.head_dim,
           .rank = config.params.integer("rank")},
          {.name = "beta", .help = "of the strength β = 2·σ(beta) of the reflection"}};
}

oracle::Array path_reference(const ReferenceInputs& x) {
  const std::vector<int64_t>& lengths = x.mask.kv_lengths;
  const oracle::Array strength = oracle::of_gates(
      x.gates[1], lengths, [](int64_t, double gate) { return 2 / (1 + std::exp(-gate)); });
  return oracle::path_attention(x.q, x.k, x.v, oracle::unit_rows(x.gates[0], 1e-6), strength,
                                lengths, x.rows);
}

}  // namespace

VariantInfo path() {
  return {.name = "path",
          .family = "gated",
          .summary = "softmax attention with a product of reflections as its position code",
          .paper = "Yang et al. 2025, arXiv:2505.16381, eqs. 2 and 5",
          .cost_formula =
              "n²·(2·d + d²/64) FLOPs and about 1400·n·d in chunks of 64; memory n·(8·d + 320); in "
              "a layer 2·n·rank·(width + heads·d) more",
          .traits = {.causal = true, .convex = true, .decode = true, .gated = true},
          .params = {{"rank", 32, "of the projection that makes w in a layer"}},
          .make = make_as<Path>,
          .reference = path_reference,
          .gates = path_gates,
          .always_causal = [](const Params&) { return true; },
          .notes = {"The mixer alone, unless block=paper: without the short convolution and silu "
                    "before w, and without the forget gate that the paper adds as a choice.",
                    "w is divided by √(|w|² + 1e-6), as fla does. The maps between key j and query "
                    "i are those of positions j + 1 to i; values pass none.",
                    "Decoding rewrites all cached keys at each step: a state of 2·d numbers a "
                    "position, as that of full, is read and written.",
                    "Where query heads share keys and values (kv_heads), each still has its own "
                    "gates, and with them keys of its own."},
          .block = LayerBlock{
              .convolution =
                  {.kernel = 3, .queries = false, .keys = false, .values = false, .gates = {"w"}},
              .biased_gates = {"beta"},
              .replaces_steps = true,
              .notes = {"Yang et al. 2025, section 3.3; defaults of fla, layers/path_attn.py: a "
                        "convolution of 3 and silu of w."}}};
}

}  // namespace attn::variants
