// One query against a cache of values; see synthetic_decoder.h. Parallel over batch × heads.
#include "variants/kernels/synthetic_decoder.h"

#include <algorithm>
#include <vector>

#include "core/counters.h"
#include "core/kernels/product.h"
#include "core/kernels/rows.h"
#include "core/kernels/softmax_rows.h"
#include "core/recycled.h"
#include "variants/kernels/softmax_merge.h"
#include "variants/kernels/softmax_tiles.h"
#include "variants/kernels/workers.h"

namespace attn {
namespace {

class SyntheticDecoder final : public Decoder {
 public:
  SyntheticDecoder(const Shape& position, int64_t capacity, SyntheticLogits logits)
      : Decoder(position, capacity),
        heads_(position[1]),
        logits_(std::move(logits)),
        values_({position[0] * position[1], capacity, position[3]}) {}

 private:
  void do_extend(const Tensor&, const Tensor& v) override {
    const int64_t size = v.dim(2) * head_dim();
    for (int64_t head = 0; head < heads(); ++head)
      std::copy_n(v.data() + head * size, size, row(head, length()));
  }
  void do_step(const real* q, const real*, const real* v, real* out) override {
    const int64_t dim = head_dim(), count = length() + 1, cols = round_up(count, kRowMultiple);
    run_tasks(heads(), cols, [&](int64_t head, real* weights) {
      std::copy_n(v + head * dim, dim, row(head, length()));
      logits_.fill(head % heads_, length(), q + head * dim, weights);
      scale_rows_to(weights, count, real(1.4426950408889634), weights);
      std::fill(weights + count, weights + cols, -kInfinity);
      real top = -kInfinity, mass = 0, shrink = 1;
      soften_rows(1, cols, weights, cols, &top, &mass, &shrink);
      product(1, dim, count, {weights, cols}, {row(head, 0), dim}, out + head * dim, dim);
      divide_row(dim, out + head * dim, mass, out + head * dim);
    });
    count_flops(do_step_flops());
    count_bytes(do_step_bytes());
  }
  int64_t do_state_bytes() const override {
    return values_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    return positions() * (2 * static_cast<double>(head_dim()) + logits_.flops) +
           static_cast<double>(heads()) * logits_.step_flops;
  }
  double do_step_bytes() const override {
    return sizeof(real) * (positions() * (static_cast<double>(head_dim()) + logits_.reals) +
                           static_cast<double>(heads()) * logits_.step_reals);
  }

  double positions() const { return static_cast<double>(heads() * (length() + 1)); }
  real* row(int64_t head, int64_t position) const {
    return values_.data() + (head * capacity() + position) * head_dim();
  }

  int64_t heads_;
  SyntheticLogits logits_;
  Tensor values_;  // [heads of all batch entries, capacity, dim]
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
  return {
      .fill = [=](int64_t head, int64_t i, const real*,
                  real* logits) { std::copy_n(matrix.data() + (head * n + i) * n, i + 1, logits); },
      .reals = 1};
}

SyntheticLogits product_logits(const Tensor& left, const Tensor& right) {
  const int64_t n = right.dim(1), cols = right.dim(2);
  const auto fill = [=](int64_t head, int64_t i, const real* q, real* logits) {
    const Row hidden = left.defined() ? Row() : rectified(q, cols);
    const real* const mine = left.defined() ? left.data() + (head * n + i) * cols : hidden.data();
    for (int64_t j = 0; j <= i; ++j)
      logits[j] = row_dot(mine, right.data() + (head * n + j) * cols, cols);
  };
  return {.fill = fill, .flops = 2 * static_cast<double>(cols), .reals = static_cast<double>(cols)};
}

SyntheticLogits outer_logits(const Tensor& left, const Tensor& right) {
  const int64_t dim = left.dim(1), a = left.dim(2), c = right.dim(2);
  const auto fill = [=](int64_t head, int64_t i, const real* q, real* logits) {
    const Row hidden = rectified(q, dim);
    Row first(static_cast<size_t>(a)), second(static_cast<size_t>(c));
    product(1, a, dim, {hidden.data(), dim}, {left.data() + head * dim * a, a}, first.data(), a);
    product(1, c, dim, {hidden.data(), dim}, {right.data() + head * dim * c, c}, second.data(), c);
    for (int64_t j = 0; j <= i; ++j)
      logits[j] = first[static_cast<size_t>(j % a)] * second[static_cast<size_t>(j / a)];
  };
  const double weights = static_cast<double>(dim * (a + c));
  return {.fill = fill, .step_flops = 2 * weights, .step_reals = weights};
}

std::unique_ptr<Decoder> synthetic_decoder(const Shape& position, int64_t capacity,
                                           SyntheticLogits logits) {
  return std::make_unique<SyntheticDecoder>(position, capacity, std::move(logits));
}

}  // namespace attn
