// Decoding with a cache of values; see synthetic_decoder.h. Parallel over batch × heads.
#include "variants/synthetic/synthetic_decoder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/counters.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"
#include "core/simd/softmax_rows.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

class SyntheticDecoder final : public Decoder {
 public:
  SyntheticDecoder(const Shape& position, int64_t capacity, SyntheticLogits logits)
      : Decoder(position, capacity),
        queries_(position[1] * position[2]),
        logits_(std::move(logits)),
        values_({position[0] * position[1], capacity, position[3]}) {
    if (logits_.products) keys_ = Tensor(values_.shape());
  }

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    for (int64_t head = 0; head < heads(); ++head) append(head, v.dim(2), k.data(), v.data());
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), rows = group();
    const int64_t stride = round_up(length() + 1, kRowMultiple);
    run_tasks(heads(), rows * (stride + 3), [&](int64_t head, real* weights) {
      Tally done;
      append(head, 1, k, v);
      answer(head, stride, q + head * rows * dim, weights, out + head * rows * dim, done);
    });
  }

  // Appends positions of one head to the cache.
  void append(int64_t head, int64_t count, const real* k, const real* v) const {
    const int64_t size = count * head_dim();
    std::copy_n(v + head * size, size, row(values_, head, length()));
    if (keys_.defined()) std::copy_n(k + head * size, size, row(keys_, head, length()));
  }

  // Rows of weights `stride` apart, and behind them what online_softmax_rows finds of each.
  void answer(int64_t head, int64_t stride, const real* q, real* weights, real* out,
              Tally& done) const {
    const int64_t dim = head_dim(), rows = group(), count = length() + 1;
    real *const row_max = weights + rows * stride, *const row_sum = row_max + rows,
                *const rescale = row_sum + rows;
    for (int64_t r = 0; r < rows; ++r) {
      real* const to = weights + r * stride;
      logits_.fill((head * rows + r) % queries_, length(), q + r * dim, to, done);
      if (keys_.defined()) add_products(q + r * dim, head, to, done);
      scale_rows_to(to, count, real(1.4426950408889634), to);
      std::fill(to + count, to + stride, -kInfinity);
      row_max[r] = -kInfinity, row_sum[r] = 0;
    }
    online_softmax_rows(rows, stride, weights, stride, row_max, row_sum, rescale);
    product(rows, dim, count, {weights, stride}, {row(values_, head, 0), dim}, out, dim);
    done.multiply_adds(rows * count * dim);
    done.moved<real>(caches() * count * dim);  // once for all queries of the group
    for (int64_t r = 0; r < rows; ++r) divide_row(dim, out + r * dim, row_sum[r], out + r * dim);
  }

  void add_products(const real* q, int64_t head, real* logits, Tally& done) const {
    const real scale = 1 / std::sqrt(static_cast<real>(head_dim()));
    for (int64_t j = 0; j <= length(); ++j)
      logits[j] += scale * row_dot(q, row(keys_, head, j), head_dim());
    done.multiply_adds((length() + 1) * head_dim());
  }

  int64_t do_state_bytes() const override {
    return caches() * values_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    return static_cast<double>(heads() * group()) *
           (positions() * (static_cast<double>(caches() * 2 * head_dim()) + logits_.flops) +
            logits_.step_flops);
  }
  double do_step_bytes() const override {
    const double weights = positions() * logits_.reals + logits_.step_reals;  // of a query
    return sizeof(real) * static_cast<double>(heads()) *
           (positions() * static_cast<double>(caches() * head_dim()) +
            static_cast<double>(group()) * weights);
  }

  double positions() const { return static_cast<double>(length() + 1); }
  int64_t caches() const { return keys_.defined() ? 2 : 1; }
  real* row(const Tensor& cache, int64_t head, int64_t position) const {
    return cache.data() + (head * capacity() + position) * head_dim();
  }

  int64_t queries_;  // query heads of a batch entry
  SyntheticLogits logits_;
  Tensor values_, keys_;  // [heads of all batch entries, capacity, dim]; keys: of products alone
};

using Row = std::vector<real, Recycled<real>>;

Row rectified(const real* q, int64_t dim) {
  Row hidden(q, q + dim);
  for (real& x : hidden) x = std::max(x, real(0));
  return hidden;
}

}  // namespace

SyntheticLogits matrix_logits(const Tensor& matrix) {
  const int64_t n = matrix.dim(1);
  return {.fill =
              [=](int64_t head, int64_t i, const real*, real* logits, Tally& done) {
                std::copy_n(matrix.data() + (head * n + i) * n, i + 1, logits);
                done.moved<real>(i + 1);
              },
          .reals = 1};
}

SyntheticLogits product_logits(const Tensor& left, const Tensor& right) {
  const int64_t n = right.dim(1), cols = right.dim(2);
  const auto fill = [=](int64_t head, int64_t i, const real* q, real* logits, Tally& done) {
    const Row hidden = left.defined() ? Row() : rectified(q, cols);
    const real* const mine = left.defined() ? left.data() + (head * n + i) * cols : hidden.data();
    for (int64_t j = 0; j <= i; ++j)
      logits[j] = row_dot(mine, right.data() + (head * n + j) * cols, cols);
    done.multiply_adds((i + 1) * cols);
    done.moved<real>((i + 1) * cols);
  };
  return {.fill = fill, .flops = 2 * static_cast<double>(cols), .reals = static_cast<double>(cols)};
}

SyntheticLogits outer_logits(const Tensor& left, const Tensor& right) {
  const int64_t dim = left.dim(1), a = left.dim(2), c = right.dim(2);
  const auto fill = [=](int64_t head, int64_t i, const real* q, real* logits, Tally& done) {
    const Row hidden = rectified(q, dim);
    Row first(static_cast<size_t>(a)), second(static_cast<size_t>(c));
    product(1, a, dim, {hidden.data(), dim}, {left.data() + head * dim * a, a}, first.data(), a);
    product(1, c, dim, {hidden.data(), dim}, {right.data() + head * dim * c, c}, second.data(), c);
    for (int64_t j = 0; j <= i; ++j)
      logits[j] = first[static_cast<size_t>(j % a)] * second[static_cast<size_t>(j / a)];
    done.multiply_adds(dim * (a + c));
    done.moved<real>(dim * (a + c));
  };
  const double weights = static_cast<double>(dim * (a + c));
  return {.fill = fill, .step_flops = 2 * weights, .step_reals = weights};
}

std::unique_ptr<Decoder> synthetic_decoder(const Shape& position, int64_t capacity,
                                           SyntheticLogits logits) {
  return std::make_unique<SyntheticDecoder>(position, capacity, std::move(logits));
}

}  // namespace attn
