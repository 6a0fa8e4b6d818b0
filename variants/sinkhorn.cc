// sinkhorn: each block of queries sees its own block of keys and one that a learned, doubly
// stochastic matrix sorts to its place. Tay et al. 2020, arXiv:2002.11296, section 3: R_I =
// relu(Σ_I q)·W (q in the place of the first layer's output), S = Sinkhorn(exp(R / temperature)),
// without Gumbel noise. Time 8·n·block·d + 4·n²/block·d, memory n·d + (n/block)².
#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "core/ops.h"
#include "variants/attention.h"
#include "variants/kernels/sinkhorn.h"
#include "variants/kernels/softmax_attention.h"

namespace attn::variants {
namespace {

class Sinkhorn final : public Attention {
 public:
  explicit Sinkhorn(const AttentionConfig& config)
      : Attention(config), block_(params().integer("block")) {
    const Shape shape{config.heads, config.head_dim, blocks(config.max_len)};
    const double fans = static_cast<double>(shape[1] + shape[2]);  // Glorot
    sort_ = Var(Tensor::normal(shape, rng(config.seed, "sort"), std::sqrt(2 / fans)), true);
  }

 private:
  int64_t blocks(int64_t length) const { return (length + block_ - 1) / block_; }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const int64_t n = q.dim(2), count = blocks(n);
    ATTN_CHECK(n <= config().max_len, "sinkhorn was built for {} positions at most, got {}",
               config().max_len, n);
    const Var log_sort = sorting(q, mask);  // [batch, heads, blocks, blocks]
    const Shape entry{q.dim(0) * q.dim(1) * count, 1, block_, q.dim(3)};
    const Var keys = sorted_and_own(log_sort, k, block_, mask.kv_lengths);
    const Var values = sorted_and_own(log_sort, v, block_, mask.kv_lengths);
    const SoftmaxOptions options{
        .kv_lengths = sorted_and_own_lengths(q.dim(0), q.dim(1), n, block_, mask.kv_lengths)};
    if (n % block_ == 0)
      return reshape(softmax_attention(reshape(q, entry), keys, values, options), q.shape());
    const Var rest(Tensor::zeros(q.shape().with(2, count * block_ - n)));
    const Var whole = concat(std::array{q, rest}, 2);  // [batch, heads, blocks · block, head_dim]
    const Var out = softmax_attention(reshape(whole, entry), keys, values, options);
    return slice(reshape(out, whole.shape()), 2, 0, n);
  }

  Var sorting(const Var& q, const Mask& mask) const {
    const Var hidden = relu(block_sums(q, block_, mask.kv_lengths));
    const Var scores = matmul(hidden, slice(sort_, 2, 0, blocks(q.dim(2))));
    return balanced(scores, params().number("temperature"), params().integer("iterations"), block_,
                    q.dim(2), mask.kv_lengths);
  }

  Cost do_cost(const AttentionShape& s) const override {
    const int64_t heads = s.batch * s.heads, count = blocks(s.q_len);
    const Blocks b(s.q_len, block_);
    const double d = static_cast<double>(s.head_dim), size = sizeof(real);
    const double rows = static_cast<double>(heads * s.q_len) * d,
                 all = static_cast<double>(heads * count * block_) * d,
                 pairs = static_cast<double>(heads * count * count);
    const double seen = static_cast<double>(heads * block_) *
                        static_cast<double>((b.count - 1) * 2 * block_ + b.rows + b.last);
    const double sorting = 2 * sorting_flops(heads, s.q_len, s.head_dim, block_) + 2 * pairs * d;
    const Cost attention = softmax_cost({heads * count, 1, block_, 2 * block_, s.head_dim, false});
    Cost cost;
    cost.flops = sorting + 4 * d * seen;
    cost.backward_flops = 2 * sorting + 10 * d * seen;
    cost.bytes = size * (4 * rows + 8 * all + 4 * pairs);
    cost.peak_bytes = size * (pairs + 4 * all) + attention.peak_bytes;
    if (b.last != block_)  // queries filled up, and what is cut from the output
      cost.peak_bytes += size * all + std::max(0.0, size * (all + rows) - attention.peak_bytes);
    return cost;
  }

  std::vector<Weight> do_weights() const override { return {{"sort", sort_}}; }

  int64_t block_;
  Var sort_;  // [heads, head_dim, blocks of max_len]
};

}  // namespace

VariantInfo sinkhorn() {
  return {.name = "sinkhorn",
          .family = "hashing or routing",
          .summary = "each block of queries sees its own keys and a block sorted to it",
          .paper = "Tay et al. 2020, arXiv:2002.11296, section 3",
          .cost_formula =
              "8·n·block·d FLOPs of attention, 4·n²/block·d of sorting; memory 10·n·d "
              "and (n/block)²",
          .traits = {.linear_memory = false, .fixed_length = true, .convex = true},
          .params = {{"block", 64, "positions of a block of queries and keys"},
                     {"temperature", 0.75, "of the scores before they are balanced", 1e-3, 1e3},
                     {"iterations", 8, "normalisations of columns, then rows", 1, 1000}},
          .make = make_as<Sinkhorn>,
          // One block is sorted to itself: every key counts twice.
          .limit = [](const AttentionShape& shape) -> std::optional<VariantInfo::Limit> {
            if (shape.causal) return std::nullopt;
            return VariantInfo::Limit{.params = {{"block", std::max(shape.q_len, shape.kv_len)}},
                                      .prepare = {}};
          }};
}

}  // namespace attn::variants
