// Forward of test_time_training(): one head after the other by mini-batches, whose state stays in
// the cache.
#include "variants/chunked/test_time_training.h"

#include "core/base/check.h"
#include "core/base/workers.h"
#include "core/simd/row_ops.h"
#include "variants/chunked/test_time_batch.h"

namespace attn {

TrainingBatch::TrainingBatch(const TrainingProblem& p, const TrainingSaved& s, int64_t number,
                             const Layout& layout, real* work)
    : p_(p), at_(layout), work_(work), length_(p.length(number)) {
  const int64_t rows = number * p.len * p.dim, of_head = number % p.heads * p.dim;
  q0_ = s.q.data() + rows, k0_ = s.k.data() + rows, v0_ = s.v.data() + rows;
  rate0_ = s.rate.data() + number * p.len, token_rates_ = s.token_rates.data();
  gain_ = s.gain.data() + of_head, shift_ = s.shift.data() + of_head;
  start_ = s.weights.data() + of_head * p.dim, start_bias_ = s.bias.data() + of_head;
  std::fill_n(of(at_.unused), p.dim, real(0));
}

void TrainingBatch::start(real* state) const {
  std::copy_n(start_, p_.dim * p_.dim, state);
  std::copy_n(start_bias_, p_.dim, state + p_.dim * p_.dim);
}

void TrainingBatch::model(const real* x, const real* state, real* to) {
  const int64_t d = p_.dim;
  multiply(rows_, d, d, {x, d}, {state, d}, to);
  if (!p_.normalise) return;
  const real* const bias = state + d * d;
  for (int64_t i = 0; i < rows_; ++i, to += d) {
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < d; ++c) to[c] += bias[c];
  }
}

void TrainingBatch::outputs(const real* state) {
  const int64_t n = rows_, d = p_.dim;
  real *const error = of(at_.error), *const grad = of(at_.grad), *const z = of(at_.z);
  real *const pairs = of(at_.pairs), *const weights = of(at_.weights);
  model(k_, state, z);
  {
    const Mark mark(Part::elementwise);
    if (p_.normalise)
      layer_norm_rows(n, d, z, gain_, shift_, static_cast<real>(kTrainingEpsilon), error,
                      of(at_.z_stats));
    const real* const fitted = p_.normalise ? error : z;
    ATTN_INDEPENDENT
    for (int64_t i = 0; i < n * d; ++i) error[i] = fitted[i] - v_[i] + k_[i];
    if (p_.normalise)  // the gradients of gain and shift are not wanted here
      layer_norm_rows_backward(n, d, z, of(at_.z_stats), error, gain_, grad, false, of(at_.unused),
                               of(at_.unused));
    else
      std::copy_n(error, n * d, grad);
  }
  pack_transposed(k_, n, d, d, of(at_.panel));
  multiply(n, n, d, {q_, d}, packed(of(at_.panel), d), pairs);
  {
    const Mark mark(Part::scores);
    for (int64_t i = 0; i < n; ++i) {
      real *const pair = pairs + i * n, *const weight = weights + i * n;
      const real own = p_.normalise ? 1 : 0, by = -token_rates_[i];
      ATTN_INDEPENDENT
      for (int64_t j = 0; j < n; ++j) pair[j] += own, weight[j] = by * rate_[j] * pair[j];
      std::fill(weight + i + 1, weight + n, real(0));
    }
  }
  model(q_, state, of(at_.y));
  multiply_add(n, d, n, {weights, n}, {grad, d}, of(at_.y));
}

void TrainingBatch::write(real* out) const {
  const Mark mark(Part::elementwise);
  const int64_t count = rows_ * p_.dim;
  const real* const y = of(at_.y);
  real* const to = out + first_ * p_.dim;
  if (!p_.normalise) {
    std::copy_n(y, count, to);
    return;
  }
  layer_norm_rows(rows_, p_.dim, y, gain_, shift_, static_cast<real>(kTrainingEpsilon), to,
                  nullptr);
  ATTN_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) to[i] += q_[i];
}

void TrainingBatch::train(real* state) {
  const int64_t d = p_.dim;
  real *const scaled = of(at_.scaled), *const bias = state + d * d;
  const real* const grad = of(at_.grad);
  {
    const Mark mark(Part::elementwise);
    for (int64_t i = 0; i < rows_; ++i) {
      const real by = -last_rate() * rate_[i];
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < d; ++c) scaled[i * d + c] = by * k_[i * d + c];
      if (!p_.normalise) continue;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < d; ++c) bias[c] += by * grad[i * d + c];
    }
  }
  multiply_add(d, d, rows_, {scaled, 1, d}, {grad, d}, state);
}

namespace {

// The parts of a worker's workspace.
struct Parts {
  explicit Parts(const TrainingProblem& p) : batch(p, parts) { state = parts.take(p.state()); }
  WorkspaceParts parts;
  TrainingBatch::Layout batch;
  int64_t state;
};

TrainingProblem training_problem(const TrainingInputs& x, const TrainingOptions& options) {
  ATTN_CHECK(x.q.shape().rank() == 4 && x.token_rates.shape().rank() == 1,
             "test-time training: q {} must have four dimensions and token_rates {} one",
             x.q.shape().str(), x.token_rates.shape().str());
  const TrainingProblem p{.batch = x.q.dim(0),
                          .heads = x.q.dim(1),
                          .len = x.q.dim(2),
                          .dim = x.q.dim(3),
                          .mini_batch = x.token_rates.dim(0),
                          .normalise = options.normalise,
                          .kv_lengths = options.kv_lengths};
  const auto check = [](const char* name, const Var& given, const Shape& wanted) {
    ATTN_CHECK(given.shape() == wanted, "test-time training: {} of {} in place of {}", name,
               given.shape().str(), wanted.str());
  };
  check("k", x.k, x.q.shape());
  check("v", x.v, x.q.shape());
  check("rate", x.rate, x.q.shape().with(3, 1));
  check("gain", x.gain, {p.heads, p.dim});
  check("shift", x.shift, {p.heads, p.dim});
  check("weights", x.weights, {p.heads, p.dim, p.dim});
  check("bias", x.bias, {p.heads, p.dim});
  ATTN_CHECK(p.kv_lengths.empty() || std::ssize(p.kv_lengths) == p.batch,
             "test-time training: {} lengths for a batch of {}", p.kv_lengths.size(), p.batch);
  for (const int64_t length : p.kv_lengths)
    ATTN_CHECK(length >= 0 && length <= p.len, "test-time training: length {} is not in [0, {}]",
               length, p.len);
  return p;
}

void training_forward(const TrainingProblem& p, const TrainingSaved& s, const Parts& parts,
                      int64_t number, real* out, real* work) {
  TrainingBatch batch(p, s, number, parts.batch, work);
  real* const state = work + parts.state;
  const auto keep = [&](int64_t b) {
    if (s.states.defined())
      std::copy_n(state, p.state(), s.states.data() + (number * p.states() + b) * p.state());
  };
  batch.start(state);
  for (int64_t b = 0; b < batch.batches(); ++b) {
    keep(b);
    batch.set(b);
    batch.outputs(state);
    batch.write(out);
    if (batch.trains(b)) batch.train(state);
  }
  keep(batch.batches());
  if (p.length(number) == 0) std::fill_n(out, p.len * p.dim, real(0));
  batch.each_padding([&] {
    batch.padding_outputs(state);
    batch.write(out);
  });
}

}  // namespace

Var test_time_training(const TrainingInputs& x, const TrainingOptions& options) {
  const TrainingProblem p = training_problem(x, options);
  TrainingSaved saved{.q = x.q.value(),
                      .k = x.k.value(),
                      .v = x.v.value(),
                      .rate = x.rate.value(),
                      .token_rates = x.token_rates.value(),
                      .gain = x.gain.value(),
                      .shift = x.shift.value(),
                      .weights = x.weights.value(),
                      .bias = x.bias.value()};
  const Tensor out(x.q.shape());
  const bool keep =
      recording({x.q, x.k, x.v, x.rate, x.token_rates, x.gain, x.shift, x.weights, x.bias});
  if (keep) saved.states = Tensor({p.total_heads(), p.states(), p.state()});
  const Parts parts(p);
  run_tasks(p.total_heads(), parts.parts.total(), [&](int64_t head, real* work) {
    training_forward(p, saved, parts, head, out.data() + head * p.len * p.dim, work);
  });
  count_bytes(sizeof(real) * static_cast<double>(4 * out.size() + saved.rate.size()));
  if (!keep) return Var(out);
  return custom_op(out, {x.q, x.k, x.v, x.rate, x.token_rates, x.gain, x.shift, x.weights, x.bias},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     training_backward(p, saved, grad_out, grads);
                   });
}

Cost training_cost(const AttentionShape& s, int64_t mini_batch) {
  const TrainingProblem p{.batch = s.batch,
                          .heads = s.heads,
                          .len = s.kv_len,
                          .dim = s.head_dim,
                          .mini_batch = mini_batch};
  const int64_t square = p.dim * p.dim;
  int64_t forward = 0, backward = 0;  // multiply-adds of a head
  for (int64_t first = 0; first < p.len; first += p.mini_batch) {
    const int64_t n = std::min(p.mini_batch, p.len - first);
    const int64_t trains = first + n < p.len ? 1 : 0, pairs = n * n * p.dim;
    forward += (2 + trains) * n * square + 2 * pairs;
    backward += (6 + 2 * trains) * n * square + 6 * pairs;
  }
  const auto heads = static_cast<double>(p.total_heads());
  const double numbers = heads * static_cast<double>(p.len * p.dim), size = sizeof(real);
  return {.flops = 2 * heads * static_cast<double>(forward),
          .backward_flops = 2 * heads * static_cast<double>(backward),
          .bytes = size * (4 * numbers + heads * static_cast<double>(p.len)),
          .peak_bytes = size * numbers + static_cast<double>(workspace_bytes(
                                             p.total_heads(), Parts(p).parts.total())),
          .state_bytes = 2 * size * heads * static_cast<double>(p.state())};
}

}  // namespace attn
