// Backward of test_time_training(): the mini-batches of each head from the last to the first, each
// computed again from its stored state. The state is trained with gradients, so their gradient goes
// through the backward of the layer norm.
#include <array>

#include "core/base/workers.h"
#include "core/simd/row_ops.h"
#include "variants/chunked/test_time_batch.h"

namespace attn {
namespace {

// The parts of a worker's workspace.
struct BackwardParts {
  explicit BackwardParts(const TrainingProblem& p) : batch(p, parts) {
    const int64_t rows = p.rows(), numbers = rows * p.dim;
    grad_state = parts.take(p.state());
    state_panel = parts.take(packed_reals(p.dim, p.dim));
    // Those of y and z stand one after the other.
    grad_yz = parts.take(2 * numbers);
    for (int64_t* const part : {&grad_grad, &through}) *part = parts.take(numbers);
    unit = parts.take(2 * p.dim);
    for (int64_t* const part : {&grad_pairs, &grad_weights}) *part = parts.take(rows * rows);
  }
  WorkspaceParts parts;
  TrainingBatch::Layout batch;
  int64_t grad_state, state_panel, grad_yz, grad_grad, through, unit, grad_pairs, grad_weights;
};

// Where the gradients of a head are added.
struct StepGradients {
  real *q, *k, *v, *rate, *token_rates, *gain, *shift, *weights, *bias;
};

class TrainingBackward : public TrainingBatch {
 public:
  TrainingBackward(const TrainingProblem& p, const TrainingSaved& s, int64_t number,
                   const BackwardParts& parts, const StepGradients& to, real* work)
      : TrainingBatch(p, s, number, parts.batch, work),
        parts_(parts),
        to_(to),
        states_(s.states.data() + number * p.states() * p.state()) {}

  // grad_out: of the head.
  void run(const real* grad_out) {
    std::fill_n(of(parts_.grad_state), p_.state(), real(0));
    each_padding([&] {
      const real* const state = states_ + batches() * p_.state();
      padding_outputs(state);
      of_outputs(grad_out + first_ * p_.dim);
      of_queries(state);
    });
    for (int64_t b = batches() - 1; length_ > 0 && b >= 0; --b) {
      const real* const state = states_ + b * p_.state();
      set(b);
      outputs(state);
      of_outputs(grad_out + first_ * p_.dim);
      of_pairs();
      if (trains(b)) of_training();
      of_gradients();
      of_models(state);
    }
    const real* const grad = of(parts_.grad_state);
    add(p_.dim * p_.dim, 1, grad, to_.weights);
    add(p_.dim, 1, grad + p_.dim * p_.dim, to_.bias);
  }

 private:
  static void add(int64_t count, real factor, const real* from, real* to) {
    ATTN_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
  }
  real* grad_y() const { return of(parts_.grad_yz); }
  real* grad_z() const { return grad_y() + rows_ * p_.dim; }
  real* row_of(real* head) const { return head + first_ * p_.dim; }  // the mini-batch's first

  // From the outputs to y.
  void of_outputs(const real* grad_out) {
    const Mark mark(Part::elementwise);
    const int64_t n = rows_, d = p_.dim;
    if (!p_.normalise) {
      std::copy_n(grad_out, n * d, grad_y());
      return;
    }
    // The norm itself was written over; only its mean and deviation are needed again.
    layer_norm_rows(n, d, of(at_.y), gain_, shift_, static_cast<real>(kTrainingEpsilon),
                    of(parts_.through), of(at_.y_stats));
    layer_norm_rows_backward(n, d, of(at_.y), of(at_.y_stats), grad_out, gain_, grad_y(), false,
                             to_.gain, to_.shift);
    add(n * d, 1, grad_out, row_of(to_.q));
  }

  // From y to the pairs, their rates, and G.
  void of_pairs() {
    const int64_t n = rows_, d = p_.dim;
    real *const grad_weights = of(parts_.grad_weights), *const grad_pairs = of(parts_.grad_pairs);
    pack_transposed(of(at_.grad), n, d, d, of(at_.panel));
    multiply(n, n, d, {grad_y(), d}, packed(of(at_.panel), d), grad_weights);
    multiply(n, d, n, {of(at_.weights), 1, n}, {grad_y(), d}, of(parts_.grad_grad));
    {
      const Mark mark(Part::scores);
      real* const rates = to_.rate + first_;
      for (int64_t i = 0; i < n; ++i) {
        real *const grad = grad_weights + i * n, *const pair = of(at_.pairs) + i * n;
        const real by = token_rates_[i];
        std::fill(grad + i + 1, grad + n, real(0));
        ATTN_INDEPENDENT
        for (int64_t j = 0; j < n; ++j) {
          grad_pairs[i * n + j] = -by * rate_[j] * grad[j];
          grad[j] *= -pair[j];
          rates[j] += by * grad[j];
        }
        to_.token_rates[i] += row_dot(rate_, grad, n);
      }
    }
    multiply_add(n, d, n, {grad_pairs, n}, {k_, d}, row_of(to_.q));
    multiply_add(n, d, n, {grad_pairs, 1, n}, {q_, d}, row_of(to_.k));
  }

  // From the state after the mini-batch to keys, rates and G.
  void of_training() {
    const int64_t n = rows_, d = p_.dim;
    real *const through = of(parts_.through), *const of_keys = of(at_.scaled);
    const real *const grad_state = of(parts_.grad_state), *const grad = of(at_.grad);
    model(k_, grad_state, through);
    pack_transposed(grad_state, d, d, d, of(parts_.state_panel));
    multiply(n, d, d, {grad, d}, packed(of(parts_.state_panel), d), of_keys);
    const Mark mark(Part::elementwise);
    for (int64_t i = 0; i < n; ++i) {
      const real by = last_rate() * rate_[i], dot = row_dot(through + i * d, grad + i * d, d);
      add(d, -by, through + i * d, of(parts_.grad_grad) + i * d);
      add(d, -by, of_keys + i * d, row_of(to_.k) + i * d);
      to_.rate[first_ + i] -= last_rate() * dot;
      to_.token_rates[n - 1] -= rate_[i] * dot;
    }
  }

  // From G to z, keys and values. With e = LN(z) - v + k, û the normalised z and r its inverse
  // deviation, G = r·P(gain⊙e), where P(x) = x - mean(x) - û·mean(x⊙û) is symmetric: the gradient
  // goes through e, û and r.
  void of_gradients() {
    const Mark mark(Part::elementwise);
    const int64_t d = p_.dim;
    real *const given = of(parts_.grad_grad), *const of_e = of(parts_.through);
    if (!p_.normalise) {
      std::copy_n(given, rows_ * d, grad_z());
      add(rows_ * d, -1, given, row_of(to_.v)), add(rows_ * d, 1, given, row_of(to_.k));
      return;
    }
    const real* const stats = of(at_.z_stats);
    for (int64_t i = 0; i < rows_; ++i)
      through_row(stats[2 * i], stats[2 * i + 1], of(at_.z) + i * d, of(at_.error) + i * d,
                  of(at_.grad) + i * d, given + i * d, of_e + i * d, grad_z() + i * d);
    add(rows_ * d, -1, of_e, row_of(to_.v)), add(rows_ * d, 1, of_e, row_of(to_.k));
  }

  // One row: of_e becomes the gradient of e, of_z that of z.
  void through_row(real mean, real r, const real* z, const real* error, const real* grad,
                   const real* given, real* of_e, real* of_z) {
    const int64_t d = p_.dim;
    const real each = 1 / static_cast<real>(d);
    real *const unit = of(parts_.unit), *const pull = unit + d;  // û, then gain⊙e
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < d; ++c) unit[c] = (z[c] - mean) * r, pull[c] = gain_[c] * error[c];
    const real along = each * row_dot(pull, unit, d), given_mean = each * sum_in_row(given, d);
    const real given_along = each * row_dot(given, unit, d);
    const real of_deviation = each * row_dot(given, grad, d);  // dr·r/d
    real *const gain = to_.gain, *const shift = to_.shift;
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < d; ++c) {
      const real of_pull = r * (given[c] - given_mean - unit[c] * given_along);
      const real own = gain_[c] * of_pull;  // of e
      of_e[c] = own;
      gain[c] += of_pull * error[c] + own * unit[c];
      shift[c] += own;
      // of û, by P and by e
      of_z[c] = gain_[c] * own - r * (along * given[c] + given_along * pull[c]);
    }
    const real mean_z = each * sum_in_row(of_z, d), along_z = each * row_dot(of_z, unit, d);
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < d; ++c)
      of_z[c] = r * (of_z[c] - mean_z - unit[c] * (along_z + of_deviation));
  }

  // From y and z to queries, keys, and the state before.
  void of_models(const real* state) {
    of_queries(state);
    of_model(k_, grad_z(), row_of(to_.k));
  }
  void of_queries(const real* state) {
    pack_transposed(state, p_.dim, p_.dim, p_.dim, of(parts_.state_panel));
    of_model(q_, grad_y(), row_of(to_.q));
  }
  // Of x·W + b, whose gradient is `grad`.
  void of_model(const real* x, const real* grad, real* grad_x) {
    const int64_t n = rows_, d = p_.dim;
    real* const grad_state = of(parts_.grad_state);
    multiply_add(n, d, d, {grad, d}, packed(of(parts_.state_panel), d), grad_x);
    multiply_add(d, d, n, {x, 1, d}, {grad, d}, grad_state);
    if (p_.normalise) add_column_sums(grad_state + d * d, grad, n, d);
  }

  const BackwardParts& parts_;
  const StepGradients to_;
  const real* const states_;
};

}  // namespace

void training_backward(const TrainingProblem& p, const TrainingSaved& s, const Tensor& grad_out,
                       std::span<Tensor> grads) {
  const MemoryScope scope(Purpose::workspace);
  // What heads or sequences share gets a row for each, and the rows are added up afterwards.
  std::array<Tensor, kStartBias + 1> of_heads;
  std::array<int64_t, kStartBias + 1> numbers{};
  for (size_t i = 0; i < of_heads.size(); ++i) {
    const bool is_row = i <= kTrainedRate;
    const int64_t d = p.dim;
    numbers[i] = i == kTrainedRate    ? p.len
                 : is_row             ? p.len * d
                 : i == kTokenRates   ? p.mini_batch
                 : i == kStartWeights ? d * d
                                      : d;
    of_heads[i] =
        is_row && grads[i].defined() ? grads[i] : Tensor::zeros({p.total_heads(), numbers[i]});
  }
  const BackwardParts parts(p);
  run_tasks(p.total_heads(), parts.parts.total(), [&](int64_t head, real* work) {
    const auto row = [&](size_t input) { return of_heads[input].data() + head * numbers[input]; };
    const StepGradients to{row(kTrainedQ),     row(kTrainedK),     row(kTrainedV),
                           row(kTrainedRate),  row(kTokenRates),   row(kTrainedGain),
                           row(kTrainedShift), row(kStartWeights), row(kStartBias)};
    TrainingBackward(p, s, head, parts, to, work).run(grad_out.data() + head * p.len * p.dim);
  });
  for (size_t i = kTokenRates; i < of_heads.size(); ++i) {
    if (!grads[i].defined()) continue;
    for (int64_t j = 0; j < of_heads[i].size(); ++j)
      grads[i][j % grads[i].size()] += of_heads[i][j];  // [heads, …] or one for all
  }
}

}  // namespace attn
