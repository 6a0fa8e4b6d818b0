// The cross-entropy of features' weights in blocks of queries; see mimicry.h. Where the op is
// recorded the gradient is computed with the loss, and the backward only scales it.
#include "variants/features/mimicry.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/base/recycled.h"
#include "core/simd/product.h"

namespace attn {
namespace {

constexpr int64_t kBlock = 64;  // queries at a time
// Two features' rows whose supports underflow apart have no product: its logarithm is cut here.
constexpr real kLeast = static_cast<real>(1e-12);

using Numbers = std::vector<real, Recycled<real>>;

struct Sizes {
  int64_t q_len, kv_len, dim, features;
};

// One (batch entry, head). Null gradients: only the loss.
struct Unit {
  const real *q, *k, *phi_q, *phi_k;
  real *grad_q, *grad_k;
};

// Keys that query i sees; 0 for a row that is left out.
int64_t seen_by(int64_t i, const Sizes& size, int64_t valid, bool causal) {
  if (size.q_len == size.kv_len && i >= valid) return 0;
  const int64_t past = i + size.kv_len - size.q_len + 1;
  return std::max<int64_t>(0, causal ? std::min(valid, past) : valid);
}

int64_t valid_keys(const Mask& mask, int64_t batch, const Sizes& size) {
  return mask.kv_lengths.empty() ? size.kv_len : mask.kv_lengths[static_cast<size_t>(batch)];
}

// Of one row: the loss, from logits and features' products; `products` becomes the gradient of the
// products times `weight`, and zeros up to `cols`.
double row_loss(real* logits, real* products, int64_t seen, int64_t cols, real weight) {
  const real most = *std::max_element(logits, logits + seen);
  double total = 0, sum = 0, cross = 0;
  for (int64_t j = 0; j < seen; ++j) {
    logits[j] = std::exp(logits[j] - most);
    products[j] = std::max(products[j], kLeast);
    total += static_cast<double>(logits[j]);
    sum += static_cast<double>(products[j]);
  }
  for (int64_t j = 0; j < seen; ++j) {
    const real p = logits[j] / static_cast<real>(total);
    cross += static_cast<double>(p) * static_cast<double>(std::log(products[j]));
    const bool cut = products[j] == kLeast;
    products[j] = cut ? 0 : weight * (1 / static_cast<real>(sum) - p / products[j]);
  }
  std::fill(products + seen, products + cols, real(0));
  return std::log(sum) - cross;
}

double unit_loss(const Unit& unit, const Sizes& size, int64_t valid, bool causal, real weight) {
  if (valid == 0) return 0;
  const int64_t dim = size.dim, m = size.features;
  Numbers keys(static_cast<size_t>(packed_reals(valid, dim))),
      features(static_cast<size_t>(packed_reals(valid, m))),
      logits(static_cast<size_t>(kBlock * valid)), products(logits.size()),
      queries(static_cast<size_t>(kBlock * dim));
  pack_transposed(unit.k, valid, dim, dim, keys.data());
  pack_transposed(unit.phi_k, valid, m, m, features.data());
  const real scale = 1 / std::sqrt(static_cast<real>(dim));
  double loss = 0;
  for (int64_t begin = 0; begin < size.q_len; begin += kBlock) {
    const int64_t rows = std::min(kBlock, size.q_len - begin);
    int64_t cols = 0;
    for (int64_t i = 0; i < rows; ++i)
      cols = std::max(cols, seen_by(begin + i, size, valid, causal));
    if (cols == 0) continue;
    for (int64_t i = 0; i < rows * dim; ++i)
      queries[static_cast<size_t>(i)] = unit.q[begin * dim + i] * scale;
    product(rows, cols, dim, {queries.data(), dim}, packed(keys.data(), dim), logits.data(), cols);
    product(rows, cols, m, {unit.phi_q + begin * m, m}, packed(features.data(), m), products.data(),
            cols);
    for (int64_t i = 0; i < rows; ++i) {
      real *const logit = logits.data() + i * cols, *const by_features = products.data() + i * cols;
      const int64_t seen = seen_by(begin + i, size, valid, causal);
      if (seen > 0)
        loss += row_loss(logit, by_features, seen, cols, weight);
      else
        std::fill_n(by_features, cols, real(0));
    }
    if (!unit.grad_q) continue;
    product(rows, m, cols, {products.data(), cols}, {unit.phi_k, m}, unit.grad_q + begin * m, m);
    add_product(cols, m, rows, {products.data(), 1, cols}, {unit.phi_q + begin * m, m}, unit.grad_k,
                m);
  }
  return loss;
}

void check_shapes(const Tensor& q, const Tensor& k, const Var& phi_q, const Var& phi_k,
                  const Mask& mask) {
  const auto rows = [](const Shape& shape) { return Shape{shape[0], shape[1], shape[2]}; };
  ATTN_CHECK(q.shape().rank() == 4 && k.shape().rank() == 4 &&
                 rows(q.shape()) == rows(phi_q.shape()) && rows(k.shape()) == rows(phi_k.shape()) &&
                 q.dim(3) == k.dim(3) && phi_q.dim(3) == phi_k.dim(3) && q.dim(0) == k.dim(0) &&
                 q.dim(1) == k.dim(1),
             "features {} and {} do not fit queries {} and keys {}", phi_q.shape().str(),
             phi_k.shape().str(), q.shape().str(), k.shape().str());
  ATTN_CHECK(!mask.edges && (mask.kv_lengths.empty() || std::ssize(mask.kv_lengths) == q.dim(0)),
             "a mimicry loss takes no edges, and a length for each of {} sequences", q.dim(0));
}

}  // namespace

Var softmax_mimicry(const Tensor& q, const Tensor& k, const Var& phi_q, const Var& phi_k,
                    const Mask& mask) {
  check_shapes(q, k, phi_q, phi_k, mask);
  const Sizes size{q.dim(2), k.dim(2), q.dim(3), phi_q.dim(3)};
  const int64_t heads = q.dim(1), units = q.dim(0) * heads;
  int64_t rows = 0;
  for (int64_t unit = 0; unit < units; ++unit)
    for (int64_t i = 0; i < size.q_len; ++i)
      rows += seen_by(i, size, valid_keys(mask, unit / heads, size), mask.causal) > 0;
  const double weight = 1 / static_cast<double>(std::max<int64_t>(1, rows));
  const bool recorded = recording({phi_q, phi_k});
  const Tensor grad_q = recorded ? Tensor::zeros(phi_q.shape()) : Tensor(),
               grad_k = recorded ? Tensor::zeros(phi_k.shape()) : Tensor();
  std::vector<double> losses(static_cast<size_t>(units));
  parallel_for(units, 1, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t of_q = u * size.q_len, of_k = u * size.kv_len, m = size.features;
      const Unit unit{q.data() + of_q * size.dim,
                      k.data() + of_k * size.dim,
                      phi_q.value().data() + of_q * m,
                      phi_k.value().data() + of_k * m,
                      recorded ? grad_q.data() + of_q * m : nullptr,
                      recorded ? grad_k.data() + of_k * m : nullptr};
      losses[static_cast<size_t>(u)] = unit_loss(unit, size, valid_keys(mask, u / heads, size),
                                                 mask.causal, static_cast<real>(weight));
    }
  });
  double total = 0;
  for (const double loss : losses) total += loss;
  return custom_op(Tensor::full({1}, static_cast<real>(total * weight)), {phi_q, phi_k},
                   [grad_q, grad_k](const Tensor& g, std::span<Tensor> grads) {
                     const Tensor known[] = {grad_q, grad_k};
                     for (size_t which = 0; which < 2; ++which) {
                       if (!grads[which].defined()) continue;
                       real* const to = grads[which].data();
                       const real* const from = known[which].data();
                       for (int64_t i = 0; i < known[which].size(); ++i) to[i] += g[0] * from[i];
                     }
                   });
}

}  // namespace attn
