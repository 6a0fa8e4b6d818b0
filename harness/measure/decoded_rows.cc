// Steps of a decoder; see decoded_rows.h.
#include "harness/measure/decoded_rows.h"

#include <algorithm>
#include <vector>

namespace attn {
namespace {

// Copies position `at` of x [batch, heads, length, dim] to `row` [batch, heads, 1, dim], or back.
void take_position(const Tensor& x, int64_t at, const Tensor& row) {
  const int64_t dim = x.dim(3);
  for (int64_t m = 0; m < x.dim(0) * x.dim(1); ++m)
    std::copy_n(x.data() + (m * x.dim(2) + at) * dim, dim, row.data() + m * dim);
}

void put_position(const Tensor& row, int64_t at, const Tensor& x) {
  const int64_t dim = x.dim(3);
  for (int64_t m = 0; m < x.dim(0) * x.dim(1); ++m)
    std::copy_n(row.data() + m * dim, dim, x.data() + (m * x.dim(2) + at) * dim);
}

CacheType with_real_values(CacheType cache) {
  for (const auto& each : names_of(cache))
    if (keys_of(each.value) == keys_of(cache) && values_of(each.value) == CacheNumber::float32)
      return each.value;
  throw_error("no cache has these keys");
}

}  // namespace

Tensor decoded_rows(const Attention& attention, CacheType cache, const Tensor& q, const Tensor& k,
                    const Tensor& v, std::span<const Var> gates) {
  const auto decoder = attention.decoder(q.dim(0), q.dim(2), 0, Dtype::float32, cache);
  const Shape one = q.shape().with(2, 1);
  const Tensor query(one), key(one), value(one), answer(one), all(q.shape());
  std::vector<Tensor> gate_rows;
  for (const Var& gate : gates) gate_rows.emplace_back(gate.shape().with(2, 1));
  for (int64_t at = 0; at < q.dim(2); ++at) {
    take_position(q, at, query);
    take_position(k, at, key);
    take_position(v, at, value);
    for (size_t i = 0; i < gates.size(); ++i) take_position(gates[i].value(), at, gate_rows[i]);
    decoder->step(query, key, value, answer, gate_rows);
    put_position(answer, at, all);
  }
  return all;
}

Tensor decoded_weights(const Attention& attention, CacheType cache, const Tensor& q,
                       const Tensor& k, std::span<const Var> gates) {
  const int64_t matrices = q.dim(0) * q.dim(1), length = q.dim(2), dim = q.dim(3);
  const Tensor weights({q.dim(0), q.dim(1), length, length});
  for (int64_t first = 0; first < length; first += dim) {
    const int64_t columns = std::min(dim, length - first);
    const Tensor v = Tensor::zeros(k.shape());
    for (int64_t m = 0; m < matrices; ++m)
      for (int64_t c = 0; c < columns; ++c) v[(m * length + first + c) * dim + c] = 1;
    const Tensor out = decoded_rows(attention, with_real_values(cache), q, k, v, gates);
    for (int64_t row = 0; row < matrices * length; ++row)
      std::copy_n(out.data() + row * dim, columns, weights.data() + row * length + first);
  }
  return weights;
}

}  // namespace attn
