// A block of attention between sets, composed from ops; see set_block.h.
#include "variants/lowrank/set_block.h"

#include <cmath>

#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

Var heads_of(const Var& rows, int64_t heads) {  // [batch, len, width] -> [.., heads, len, head_dim]
  return heads == 1 ? reshape(rows, {rows.dim(0), 1, rows.dim(1), rows.dim(2)})
                    : split_heads(rows, heads);
}

Var normalised(const SetBlock& b, int which, const Var& rows) {
  return b.gain[which].defined() ? layer_norm(rows, b.gain[which], b.shift[which]) : rows;
}

}  // namespace

Var set_attention(const SetBlock& b, const Var& projected, const Var& to,
                  const std::vector<int64_t>& lengths) {
  const Var keys = linear_to_heads(to, b.k, b.heads);
  const Var values = heads_of(linear(to, b.v, b.v_bias), b.heads);
  const double scale = 1 / std::sqrt(static_cast<double>(projected.dim(2)));
  Var rows = merge_heads(softmax_attention(heads_of(projected, b.heads), keys, values,
                                           {.kv_lengths = lengths, .scale = scale}));
  rows = normalised(b, 0, add(projected, rows));
  return normalised(b, 1, add(rows, relu(linear(rows, b.out, b.out_bias))));
}

}  // namespace attn
