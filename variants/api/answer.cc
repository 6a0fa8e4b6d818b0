// Steps one after the other; see answer.h.
#include "variants/api/answer.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"

namespace attn {
namespace {

// One position of each of x's sequences and heads, [batch, heads, 1, dim], and back.
void take_row(const Tensor& x, int64_t at, const Tensor& row) {
  const int64_t dim = x.dim(3);
  for (int64_t m = 0; m < x.dim(0) * x.dim(1); ++m)
    std::copy_n(x.data() + (m * x.dim(2) + at) * dim, dim, row.data() + m * dim);
}

void put_row(const Tensor& row, int64_t at, const Tensor& x) {
  const int64_t dim = x.dim(3);
  for (int64_t m = 0; m < x.dim(0) * x.dim(1); ++m)
    std::copy_n(row.data() + m * dim, dim, x.data() + (m * x.dim(2) + at) * dim);
}

}  // namespace

void answer(Decoder& decoder, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
            std::span<const Tensor> gates) {
  const int64_t len = q.dim(2);
  ATTN_CHECK(out.shape() == q.shape() && k.dim(2) == len && v.shape() == k.shape(),
             "answers {} of queries {} beside keys {} and values {}", out.shape().str(),
             q.shape().str(), k.shape().str(), v.shape().str());
  if (len == 1) return decoder.step(q, k, v, out, gates);
  const Tensor query(q.shape().with(2, 1)), key(k.shape().with(2, 1)), value(key.shape()),
      row(query.shape());
  std::vector<Tensor> gate_rows;
  for (const Tensor& gate : gates) gate_rows.emplace_back(gate.shape().with(2, 1));
  for (int64_t at = 0; at < len; ++at) {
    take_row(q, at, query);
    take_row(k, at, key);
    take_row(v, at, value);
    for (size_t i = 0; i < gates.size(); ++i) take_row(gates[i], at, gate_rows[i]);
    decoder.step(query, key, value, row, gate_rows);
    put_row(row, at, out);
  }
}

}  // namespace attn
