// See delta_rule.h. One pass over the rows each way.
#include "variants/chunked/delta_rule.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/ops/ops.h"
#include "core/simd/rows.h"
#include "variants/reference/gated.h"

namespace attn {
namespace {

using Row = Eigen::Map<Eigen::Array<real, Eigen::Dynamic, 1>>;
using ConstRow = Eigen::Map<const Eigen::Array<real, Eigen::Dynamic, 1>>;

real inverse_length(const ConstRow& x) {
  return 1 / std::sqrt(x.square().sum() + static_cast<real>(kUnitEpsilon));
}

}  // namespace

Var unit_rows(const Var& x, double factor, const std::vector<int64_t>& lengths) {
  const Tensor from = x.value(), out(x.shape());
  const int64_t heads = x.dim(1), len = x.dim(2), dim = x.dim(3);
  const auto by = static_cast<real>(factor);
  const std::vector<int64_t, Recycled<int64_t>> kept(lengths.begin(), lengths.end());
  const auto valid = [kept, heads, len](int64_t head) {
    return kept.empty() ? len : kept[static_cast<size_t>(head / heads)];
  };
  over_range(x.dim(0) * heads, 4 * len * dim, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      real* const rows = out.data() + head * len * dim;
      for (int64_t i = 0; i < valid(head); ++i) {
        const ConstRow row(from.data() + (head * len + i) * dim, dim);
        Row(rows + i * dim, dim) = by * inverse_length(row) * row;
      }
      std::fill(rows + valid(head) * dim, rows + len * dim, real(0));
    }
  });
  return custom_op(out, {x}, [=](const Tensor& g, std::span<Tensor> grads) {
    if (!grads[0].defined()) return;
    over_range(from.dim(0) * heads, 8 * len * dim, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head)
        for (int64_t i = 0; i < valid(head); ++i) {
          const int64_t at = (head * len + i) * dim;
          const ConstRow row(from.data() + at, dim), grad(g.data() + at, dim);
          const real inverse = inverse_length(row);
          const real along = inverse * inverse * (row * grad).sum();
          Row(grads[0].data() + at, dim) += by * inverse * (grad - along * row);
        }
    });
  });
}

GateInput beta_gate() { return {.name = "beta", .help = "of the strength σ(beta) of a write"}; }

Var write_strength(const Var& beta, const std::vector<int64_t>& lengths) {
  return sigmoid(zero_padding(beta, lengths));
}

void add_delta_cost(const AttentionShape& s, Cost& cost) {
  const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
  const double numbers = rows * static_cast<double>(s.head_dim);
  cost.bytes += sizeof(real) * (4 * numbers + 2 * rows);
  cost.peak_bytes += sizeof(real) * (2 * numbers + rows);
}

void set_delta(const StateRows& rows, int64_t head_dim, size_t gate, real factor) {
  const auto scaled = [head_dim](real* x, real by) {
    Row row(x, head_dim);
    row *= by * inverse_length(ConstRow(x, head_dim));
  };
  if (rows.q) scaled(rows.q, factor);
  scaled(rows.k, 1);
  *rows.beta = 1 / (1 + std::exp(-*rows.gates[gate]));
}

oracle::Array delta_reference(const ReferenceInputs& x, const oracle::Array& log_decay,
                              const oracle::Array& beta) {
  const std::vector<int64_t>& lengths = x.mask.kv_lengths;
  const oracle::Array strength = oracle::of_gates(
      beta, lengths, [](int64_t, double gate) { return 1 / (1 + std::exp(-gate)); });
  return oracle::delta_attention(oracle::unit_rows(x.q, kUnitEpsilon),
                                 oracle::unit_rows(x.k, kUnitEpsilon), x.v, log_decay, strength,
                                 1 / std::sqrt(static_cast<double>(x.q.dim)), lengths);
}

}  // namespace attn
