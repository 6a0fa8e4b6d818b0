// memory_compressed: keys and values shortened by a convolution whose stride is its kernel, then
// softmax attention to the blocks and to a learned null key. Liu et al. 2018, arXiv:1801.10198,
// section 4.2.4. Time 4·n²/stride·d + 4·n·d², memory n·d; causal: half of the pairs.
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/compressed.h"

namespace attn::variants {
namespace {

class MemoryCompressed final : public Attention {
 public:
  explicit MemoryCompressed(const AttentionConfig& config)
      : Attention(config), stride_(params().integer("stride")), nulls_(params().flag("null")) {
    const int64_t heads = config.heads, d = config.head_dim;
    const double deviation = 1 / std::sqrt(static_cast<double>(stride_ * d));
    const auto zeros = [&](const char* name) { return weight(name, Tensor::zeros({heads, d})); };
    keys_.weight = normal_weight("compress_k", {heads, stride_, d, d}, deviation);
    values_.weight = normal_weight("compress_v", {heads, stride_, d, d}, deviation);
    values_.bias = zeros("bias_v");
    if (nulls_ == 0) return;  // a bias of all keys would move no weight
    keys_.bias = zeros("bias_k");
    keys_.null_row = zeros("null_k");
    values_.null_row = zeros("null_v");
  }

 private:
  CompressedMemory blocks(bool causal, const std::vector<int64_t>& lengths) const {
    CompressedMemory how{stride_, nulls_, causal, {}};
    for (const int64_t length : lengths)
      how.kv_lengths.push_back(length == 0 ? 0 : nulls_ + compressed_blocks(length, stride_));
    return how;
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var keys = compress_blocks(k, keys_, mask.kv_lengths),
              values = compress_blocks(v, values_, mask.kv_lengths);
    return compressed_memory_attention(q, keys, values, blocks(mask.causal, mask.kv_lengths));
  }

  Cost do_cost(const AttentionShape& s) const override {
    const CompressedMemoryWork work = compressed_memory_work(s, blocks(s.causal, {}));
    const auto heads = static_cast<double>(s.batch * s.heads), d = static_cast<double>(s.head_dim),
               rows = heads * static_cast<double>(s.q_len),
               keys = heads * static_cast<double>(s.kv_len),
               slots = heads * static_cast<double>(nulls_ + compressed_blocks(s.kv_len, stride_));
    const double products = 4 * keys * d * d, matrices = static_cast<double>(2 * s.heads * stride_);
    const double compressed = sizeof(real) * 2 * slots * d;
    return {.flops = work.flops + products,
            .backward_flops = work.backward_flops + 2 * products,
            .bytes = sizeof(real) * (2 * d * (rows + keys) + matrices * d * d) + 2 * compressed,
            .peak_bytes =
                compressed +
                std::max(work.peak_bytes, static_cast<double>(compression_bytes(
                                              s.batch * s.heads, s.kv_len, stride_, s.head_dim))),
            .state_bytes = compressed_memory_bytes(s, stride_, nulls_)};
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    if (position[2] > 1) return nullptr;  // each head compresses by its own matrices
    return compressed_memory_decoder(position, capacity, keys_, values_);
  }

  int64_t stride_, nulls_;
  Compression keys_, values_;
};

void set_identity_kernel(const Attention& attention) {
  for (const Weight& weight : attention.weights()) {
    const Shape shape = weight.value.shape();
    if (shape.rank() < 4) continue;
    const Tensor identity = Tensor::zeros(shape);
    for (int64_t i = 0; i < shape.size(); ++i)
      if (i / shape[3] % shape[2] == i % shape[3]) identity[i] = 1;
    weight.value.set_value(identity);
  }
}

}  // namespace

VariantInfo memory_compressed() {
  return {
      .name = "memory_compressed",
      .family = "low rank",
      .summary = "keys and values of blocks of positions, compressed by a learned convolution",
      .paper = "Liu et al. 2018, arXiv:1801.10198, section 4.2.4",
      .cost_formula = "4·n²/stride·d FLOPs, causal half, and 4·n·d² to compress; memory n·d",
      .traits = {.causal = true, .cross = true, .decode = true, .rowwise = true, .nonlinear = true},
      .params = {{"stride", 3, "positions of a block, which becomes one key and value", 1, 4096},
                 {"null", true, "a learned key and value that every query sees"}},
      .make = make_as<MemoryCompressed>,
      .reference =
          [](const ReferenceInputs& x) {
            const auto& w = x.weights;  // compress_k, compress_v, bias_v, bias_k, null_k, null_v
            const bool null = x.params().flag("null");
            return oracle::memory_compressed(
                x.q, x.k, x.v, {&w[0], null ? &w[3] : nullptr, null ? &w[4] : nullptr},
                {&w[1], &w[2], null ? &w[5] : nullptr}, x.mask.causal, x.mask.kv_lengths, x.rows);
          },
      .limit = [](const AttentionShape&) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.params = {{"stride", int64_t{1}}, {"null", false}},
                                  .prepare = set_identity_kernel};
      },
      .skip_reason = [](const AttentionShape& shape, const Params&) -> std::optional<std::string> {
        if (!shape.causal || shape.q_len == shape.kv_len) return std::nullopt;
        return "has no causal cross-attention";
      },
      .notes = {"compress_k, compress_v [heads, stride, in, out]. Blocks begin at the first "
                "position, so that a prefix has the same blocks; popular code pads on the left, "
                "which moves the blocks with the length.",
                "A causal query sees a block from its last position on. Without null, the first "
                "stride - 1 queries then see nothing and get zeros. A sequence without a valid "
                "key gets zeros with null too."}};
}

}  // namespace attn::variants
