// Attention over sorted blocks and over runs; see block_sorting.h. The first sorts keys and values,
// 2·n²/block·d FLOPs each, then attends to 2·block rows: the sorted and the own ones. The second is
// the sum of two attentions of n queries to `block` rows.
#include <algorithm>
#include <array>

#include "core/ops/ops.h"
#include "variants/softmax/softmax.h"
#include "variants/sorting/block_sorting.h"

namespace attn {
namespace {

int64_t parts(int64_t length, int64_t size) { return (length + size - 1) / size; }

}  // namespace

Var sorted_attention(const Var& q, const Var& k, const Var& v, const Var& log_sort, int64_t block,
                     const std::vector<int64_t>& lengths) {
  const int64_t n = q.dim(2), count = parts(n, block);
  const Shape entry{q.dim(0) * q.dim(1) * count, 1, block, q.dim(3)};
  const Var keys = sorted_and_own(log_sort, k, block, lengths);
  const Var values = sorted_and_own(log_sort, v, block, lengths);
  SoftmaxOptions options;
  if (!lengths.empty() || n % block != 0)
    options.kv_lengths = sorted_and_own_lengths(q.dim(0), q.dim(1), n, block, lengths);
  if (n % block == 0)
    return reshape(softmax_attention(reshape(q, entry), keys, values, options), q.shape());
  const Var rest(Tensor::zeros(q.shape().with(2, count * block - n)));
  const Var whole = concat(std::array{q, rest}, 2);  // [batch, heads, blocks · block, head_dim]
  const Var out = softmax_attention(reshape(whole, entry), keys, values, options);
  return slice(reshape(out, whole.shape()), 2, 0, n);
}

Cost sorted_cost(const AttentionShape& s, int64_t block) {
  const int64_t heads = s.batch * s.heads, count = parts(s.q_len, block);
  const Blocks b(s.q_len, block);
  const double d = static_cast<double>(s.head_dim), size = sizeof(real);
  const double rows = static_cast<double>(heads * s.q_len) * d,
               all = static_cast<double>(heads * count * block) * d,
               pairs = static_cast<double>(heads * count * count);
  const double seen = static_cast<double>(heads * block) *
                      static_cast<double>((b.count - 1) * 2 * block + b.rows + b.last);
  const double sorting = 2 * sorting_flops(heads, s.q_len, s.head_dim, block) + 2 * pairs * d;
  const Cost attention = softmax_cost({heads * count, 1, block, 2 * block, s.head_dim, false});
  Cost cost;
  cost.flops = sorting + 4 * d * seen;
  cost.backward_flops = 2 * sorting + 10 * d * seen;
  cost.bytes = size * (4 * rows + 8 * all + 4 * pairs);
  // Sums, scores and what balances them; then sorted keys and values, and attention to them.
  const double sums = static_cast<double>((2 * heads + s.heads) * count) * d;
  const double scored = size * (sums + 2 * pairs) + balancing_workspace(heads, s.q_len, block);
  double attended = attention.peak_bytes;
  if (b.last != block)  // queries filled up, and what is cut from the output
    attended = size * all + std::max(attended, size * (all + rows));
  attended = std::max(attended, sorting_workspace(heads, s.q_len, block));
  cost.peak_bytes = std::max(scored, size * (pairs + 4 * all) + attended);
  return cost;
}

Var group_and_run_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                            const std::vector<int64_t>& lengths) {
  SoftmaxOptions options;
  for (const int64_t length : lengths) options.kv_lengths.push_back(run_count(length, block));
  const Var near = grouped_attention(q, k, v, block, lengths, false);
  const Var keys = run_sums(k, block, lengths), values = run_sums(v, block, lengths);
  return add(near, softmax_attention(q, keys, values, options));
}

Cost group_and_run_cost(const AttentionShape& s, int64_t block) {
  AttentionShape runs = s;
  runs.kv_len = run_count(s.kv_len, block);
  const Cost near = grouped_cost(s, block, false), far = softmax_cost(runs);
  const double width = sizeof(real) * static_cast<double>(s.batch * s.heads * s.head_dim);
  const double out = width * static_cast<double>(s.q_len),
               sums = 2 * width * static_cast<double>(runs.kv_len);
  return {.flops = near.flops + far.flops,
          .backward_flops = near.backward_flops + far.backward_flops,
          .bytes = near.bytes + far.bytes + out,
          .peak_bytes = std::max(near.peak_bytes, out + sums + std::max(far.peak_bytes, 2 * out))};
}

}  // namespace attn
