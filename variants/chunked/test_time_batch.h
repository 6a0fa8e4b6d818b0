// One mini-batch of one head of test_time_training(): what it computes from the state before it,
// and how it trains that state. Products of mini_batch rows; the layer norm is that of row_ops.h,
// whose backward is the gradient that the state is trained with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workspace.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "core/tensor/tensor.h"
#include "variants/chunked/test_time_training.h"

namespace attn {

struct TrainingProblem {
  int64_t batch = 0, heads = 0, len = 0, dim = 0, mini_batch = 1;
  bool normalise = true;
  std::vector<int64_t> kv_lengths = {};

  int64_t total_heads() const { return batch * heads; }
  int64_t length(int64_t head) const {
    return kv_lengths.empty() ? len : kv_lengths[static_cast<size_t>(head / heads)];
  }
  int64_t batches(int64_t length) const { return (length + mini_batch - 1) / mini_batch; }
  int64_t states() const { return batches(len) + 1; }
  int64_t rows() const { return std::max<int64_t>(1, std::min(mini_batch, len)); }
  int64_t state() const { return dim * dim + dim; }  // W, then b
};

struct TrainingSaved {
  Tensor q, k, v, rate, token_rates, gain, shift, weights, bias;
  // [batch·heads, states(), state()]: before each mini-batch, and after the last.
  Tensor states;
};

// The indices of `grads`; an undefined tensor is not needed.
enum TrainingInput : uint8_t {
  kTrainedQ,
  kTrainedK,
  kTrainedV,
  kTrainedRate,
  kTokenRates,
  kTrainedGain,
  kTrainedShift,
  kStartWeights,
  kStartBias
};
void training_backward(const TrainingProblem& problem, const TrainingSaved& saved,
                       const Tensor& grad_out, std::span<Tensor> grads);

class TrainingBatch {
 public:
  struct Layout {
    Layout(const TrainingProblem& p, WorkspaceParts& parts) {
      const int64_t rows = p.rows(), numbers = rows * p.dim;
      panel = parts.take(packed_reals(rows, p.dim));
      for (int64_t* const part : {&z, &error, &grad, &y, &scaled}) *part = parts.take(numbers);
      for (int64_t* const part : {&z_stats, &y_stats}) *part = parts.take(2 * rows);
      for (int64_t* const part : {&pairs, &weights}) *part = parts.take(rows * rows);
      unused = parts.take(p.dim);
    }
    int64_t panel, z, error, grad, y, scaled, z_stats, y_stats, pairs, weights, unused;
  };
  TrainingBatch(const TrainingProblem& p, const TrainingSaved& s, int64_t number,
                const Layout& layout, real* work);

  void start(real* state) const;
  int64_t batches() const { return p_.batches(length_); }
  // Whether the state after the mini-batch is read.
  bool trains(int64_t batch) const { return batch + 1 < batches() || length_ < p_.len; }
  void set(int64_t batch) {
    const int64_t first = batch * p_.mini_batch;
    set_rows(first, std::min(p_.mini_batch, length_ - first));
  }
  // Calls f for the padding, whose rows are set a part at a time: none without a valid position.
  template <class F>
  void each_padding(F&& f) {
    for (int64_t first = length_; first < p_.len && length_ > 0; first += p_.rows()) {
      set_rows(first, std::min(p_.rows(), p_.len - first));
      f();
    }
  }
  // y of padding, from the state after the last mini-batch.
  void padding_outputs(const real* state) { model(q_, state, of(at_.y)); }
  void set_rows(int64_t first, int64_t rows) {
    first_ = first, rows_ = rows;
    q_ = q0_ + first_ * p_.dim, k_ = k0_ + first_ * p_.dim, v_ = v0_ + first_ * p_.dim;
    rate_ = rate0_ + first_;
  }
  // z, G, the weights of pairs, and y.
  void outputs(const real* state);
  // o, from y; of the head.
  void write(real* out) const;
  void train(real* state);

 protected:
  real* of(int64_t part) const { return work_ + part; }
  real last_rate() const { return token_rates_[rows_ - 1]; }
  void multiply(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c) {
    product(rows, cols, depth, a, b, c, cols);
    done_.multiply_adds(rows * cols * depth);
  }
  void multiply_add(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c) {
    add_product(rows, cols, depth, a, b, c, cols);
    done_.multiply_adds(rows * cols * depth);
  }
  // to = x·W + b of the rows
  void model(const real* x, const real* state, real* to);

  const TrainingProblem& p_;
  const Layout at_;
  real* const work_;
  Tally done_;
  const real *q0_, *k0_, *v0_, *rate0_;  // of the head's first row
  const real *token_rates_, *gain_, *shift_, *start_, *start_bias_;
  const int64_t length_;  // valid positions
  int64_t first_ = 0, rows_ = 0;
  const real *q_ = nullptr, *k_ = nullptr, *v_ = nullptr, *rate_ = nullptr;  // of the mini-batch
};

}  // namespace attn
