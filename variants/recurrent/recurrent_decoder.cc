// Decoding with the state h and c; see recurrence.h. A step makes one product for all rows of the
// batch.
#include <algorithm>

#include "core/base/counters.h"
#include "core/simd/product.h"
#include "variants/recurrent/recurrence.h"

namespace attn {
namespace {

class RecurrentDecoder final : public MixerDecoder {
 public:
  RecurrentDecoder(const Shape& position, int64_t capacity, RecurrentCell cell,
                   const RecurrentWeights& weights)
      : MixerDecoder(position, capacity),
        cell_(cell),
        dim_(weights.state.dim(0)),
        weights_(weights),
        h_(Tensor::zeros({batch(), dim_})),
        rows_(Tensor::zeros({batch(), saved_of(cell) * dim_})),
        parts_({batch(), gates_of(cell) * dim_}) {
    if (cell == RecurrentCell::lstm) c_ = Tensor::zeros({batch(), dim_});
  }

 private:
  void do_next(const real* x, real* out) override {
    const int64_t gates = gates_of(cell_) * dim_, row = saved_of(cell_) * dim_;
    for (int64_t b = 0; b < batch(); ++b)
      std::copy_n(weights_.bias.value().data(), gates, rows_.data() + b * row);
    add_product(batch(), gates, width(), {x, width()}, {weights_.input.value().data(), gates},
                rows_.data(), row);
    product(batch(), gates, dim_, {h_.data(), dim_}, {weights_.state.value().data(), gates},
            parts_.data(), gates);
    for (int64_t b = 0; b < batch(); ++b) advance(b);
    Tally done;
    done.multiply_adds(batch() * gates * (width() + dim_));
    done.moved<real>((width() + dim_) * gates);
    done.moved<real>(2 * h_.size());
    if (c_.defined()) done.moved<real>(2 * c_.size());
    if (out) std::copy_n(h_.data(), h_.size(), out);
  }

  void advance(int64_t b) const {
    const int64_t gates = gates_of(cell_) * dim_;
    real *const a = rows_.data() + b * saved_of(cell_) * dim_, *const h = h_.data() + b * dim_;
    const real* const parts = parts_.data() + b * gates;
    if (cell_ == RecurrentCell::gru)
      return gru_row(dim_, a, parts, weights_.candidate_bias.value().data(), h, h);
    for (int64_t j = 0; j < gates; ++j) a[j] += parts[j];
    lstm_row(dim_, a, c_.data() + b * dim_, h);
    std::copy_n(a + 4 * dim_, dim_, c_.data() + b * dim_);
  }

  int64_t do_state_bytes() const override {
    const int64_t numbers = h_.size() + (c_.defined() ? c_.size() : 0);
    return numbers * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    return 2 * static_cast<double>(batch() * gates_of(cell_) * dim_ * (width() + dim_));
  }
  double do_step_bytes() const override {
    const int64_t numbers = weights_.input.value().size() + weights_.state.value().size();
    return 2 * static_cast<double>(do_state_bytes()) + sizeof(real) * static_cast<double>(numbers);
  }

  RecurrentCell cell_;
  int64_t dim_;
  RecurrentWeights weights_;
  Tensor h_, c_;         // [batch, dim]; c of an LSTM
  Tensor rows_, parts_;  // of a step: the gates, and the state's part of their sums
};

}  // namespace

std::unique_ptr<Decoder> recurrent_decoder(const Shape& position, int64_t capacity,
                                           RecurrentCell cell, const RecurrentWeights& weights) {
  return std::make_unique<RecurrentDecoder>(position, capacity, cell, weights);
}

}  // namespace attn
