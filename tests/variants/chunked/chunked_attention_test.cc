// Linear attention with decay and the delta rule against the plain recurrence in double: forward
// and gradients at chunks of every kind, extreme decays, padding, threads, cost.
#include "variants/chunked/chunked_attention.h"

#include <gtest/gtest.h>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "tests/core/simd/on_every_isa.h"
#include "tests/variants/chunked/chunked_cases.h"
#include "tests/said.h"

namespace attn::chunked_attention_test {
namespace {

using bridge::ChunkedCase;
using bridge::ChunkedResult;
using bridge::ChunkedTensors;
using bridge::Rule;

// Rounding of sums of a hundred products, and of exponents up to TileDecay's 40.
constexpr double kAllowed = 60 * kEpsilon;

TEST(ChunkedAttention, ChunksOfAnySizeAreTheRecurrence) {
  for (const ChunkedCase& c : bridge::every_rule(
           {.batch = 2, .heads = 2, .len = 75, .key_dim = 5, .dim = 3, .lengths = {75, 40}}))
    for (const int64_t chunk : {1, 7, 16, 64, 75})
      bridge::expect_recurrence(c, bridge::tensors_of(c), chunk, kAllowed);
}

// Beyond a panel of keys and of values, and odd sizes of strips, tiles and blocks.
TEST(ChunkedAttention, WideHeadsAreTheRecurrence) {
  for (const int64_t len : {1, 23, 130})
    for (const ChunkedCase& c : bridge::every_rule({.len = len, .key_dim = 70, .dim = 67}))
      bridge::expect_recurrence(c, bridge::tensors_of(c), 64, kAllowed);
}

TEST(ChunkedAttention, LongSequencesKeepTheirDigits) {
  for (const double decay_scale : {1e-4, 0.05})
    for (const ChunkedCase& c :
         bridge::every_rule({.len = 4096, .key_dim = 8, .dim = 4, .decay_scale = decay_scale})) {
      // Without forgetting, the one number of a head is the sum of 4096 gradients a thousand times
      // as large and of either sign.
      if (c.decay == Decay::head && decay_scale < 0.01) continue;
      bridge::expect_recurrence(c, bridge::tensors_of(c), 64, 4 * kAllowed);
    }
}

// In float, against the recurrence in double.
TEST(ChunkedAttention, SixtyFiveThousandPositionsKeepTheirDigits) {
  for (const ChunkedCase& c :
       bridge::every_rule({.len = 65536, .key_dim = 6, .dim = 4, .decay_scale = 0.01})) {
    if (c.decay == Decay::head || (c.decay == Decay::none && c.rule == Rule::bonus)) continue;
    SCOPED_TRACE(bridge::text_of(c));
    const ChunkedTensors x = bridge::tensors_of(c);
    std::vector<oracle::Array> arrays;
    for (const Tensor& t : x.defined()) arrays.push_back(bridge::array_of(bridge::as_matrix(t)));
    const NoGrad no_grad;
    const auto var = [](const Tensor& t) { return t.defined() ? Var(t) : Var(); };
    const Var out = chunked_attention({.q = Var(x.q),
                                       .k = Var(x.k),
                                       .v = Var(x.v),
                                       .log_decay = var(x.log_decay),
                                       .beta = var(x.beta),
                                       .bonus = var(x.bonus),
                                       .erase = var(x.erase),
                                       .remove = var(x.remove)});
    const double error = bridge::relative_error(out.value(), bridge::recurrence_of(c, arrays).x);
    EXPECT_LE(error, 4 * kAllowed);
  }
}

// Log-decays of -80, 0 and -1e-6 in any order: a step that forgets everything does not cost later
// steps their digits, row by row.
TEST(ChunkedAttention, ExtremeDecaysAreTheRecurrence) {
  const double decays[] = {-80, 0, -1e-6, -1e-6};
  for (const ChunkedCase& c :
       bridge::every_rule({.heads = 2, .len = 150, .key_dim = 6, .dim = 4})) {
    if (c.decay == Decay::none) continue;
    const ChunkedTensors x = bridge::tensors_of(c);
    Rng random = rng(3, "which decay");
    for (real& value : x.log_decay.values()) {
      const double u = random.uniform();
      value = static_cast<real>(decays[u < 0.05 ? 0 : 1 + static_cast<int>(u * 1000) % 3]);
    }
    for (const int64_t chunk : {7, 64}) {
      bridge::expect_recurrence(c, x, chunk, kAllowed);
      const Tensor out = bridge::run_chunked(x, {{}, chunk}).out;
      std::vector<oracle::Array> arrays;
      for (const Tensor& t : x.defined()) arrays.push_back(bridge::array_of(bridge::as_matrix(t)));
      const oracle::Array want = bridge::recurrence_of(c, arrays);
      double worst = 0, largest = 0;
      for (size_t i = 0; i < want.x.size(); ++i) {
        worst = std::max(worst,
                         std::abs(static_cast<double>(out[static_cast<int64_t>(i)]) - want.x[i]));
        largest = std::max(largest, std::abs(want.x[i]));
      }
      EXPECT_LE(worst, 2 * kAllowed * largest) << " of " << largest;
    }
  }
}

// A tile of channels that decays by e^-64: factors of pairs around its middle, up to e^32 each.
TEST(ChunkedAttention, FactorsAroundTheMiddleOfATileAreTheRecurrence) {
  for (const ChunkedCase& c : bridge::every_rule({.len = 75, .key_dim = 6, .dim = 4})) {
    if (c.decay != Decay::channel) continue;
    const ChunkedTensors x = bridge::tensors_of(c);
    for (real& value : x.log_decay.values()) value = real(0.1) * value - 4;
    bridge::expect_recurrence(c, x, 64, kAllowed);
  }
}

// A sum of log-decays of 5000 has a rounding error of 2e-4 in float; it is kept in double, where 64
// additions round.
TEST(ChunkedAttention, AStepThatForgetsLeavesTheDigitsOfLaterSteps) {
  for (const ChunkedCase& c : bridge::every_rule({.len = 140, .key_dim = 6, .dim = 4})) {
    if (c.decay != Decay::step && c.decay != Decay::channel) continue;
    const ChunkedTensors x = bridge::tensors_of(c);
    x.log_decay.fill(real(-1e-3));
    const int64_t width = x.log_decay.dim(3);
    for (const int64_t t : {0, 70}) std::fill_n(x.log_decay.data() + t * width, width, -5000);
    bridge::expect_recurrence(c, x, 64, kIsDouble ? 64 * 5000 * kEpsilon : kAllowed);
  }
}

TEST(ChunkedAttention, ZeroBetaWritesNothing) {
  for (const Decay decay : {Decay::none, Decay::step, Decay::channel}) {
    const ChunkedCase c{.decay = decay, .rule = Rule::delta, .len = 70, .key_dim = 5, .dim = 4};
    const ChunkedTensors x = bridge::tensors_of(c);
    for (int64_t i = 0; i < x.beta.size(); i += 3) x.beta[i] = 0;
    bridge::expect_recurrence(c, x, 64, kAllowed);
    x.beta.fill(0);
    bridge::expect_recurrence(c, x, 64, kAllowed);
    const Tensor out = bridge::run_chunked(x, {}).out;
    for (const real value : out.values()) EXPECT_EQ(value, 0);
  }
}

TEST(ChunkedAttention, PaddingIsNeverRead) {
  const std::vector<int64_t> lengths = {0, 17, 64, 70};
  for (const ChunkedCase& c : bridge::every_rule(
           {.batch = 4, .heads = 1, .len = 70, .key_dim = 4, .dim = 3, .lengths = lengths})) {
    const ChunkedTensors x = bridge::tensors_of(c);
    bridge::fill_padding(x.k, lengths, bridge::kNaN);
    bridge::fill_padding(x.v, lengths, bridge::kNaN);
    if (c.decay == Decay::step || c.decay == Decay::channel)
      bridge::fill_padding(x.log_decay, lengths, bridge::kNaN);
    if (c.rule == Rule::delta) bridge::fill_padding(x.beta, lengths, bridge::kNaN);
    if (c.rule == Rule::removal)
      for (const Tensor& rows : {x.erase, x.remove})
        bridge::fill_padding(rows, lengths, bridge::kNaN);
    bridge::expect_recurrence(c, x, 16, kAllowed);
    for (const Tensor& grad : bridge::run_chunked(x, {lengths, 64}).grads)
      for (const real value : grad.values()) ASSERT_TRUE(std::isfinite(value));
  }
}

TEST(ChunkedAttention, ThreadsGiveTheSameBits) {
  const int before = threads();
  for (const ChunkedCase& c :
       bridge::every_rule({.batch = 2, .heads = 3, .len = 100, .key_dim = 8, .dim = 8})) {
    SCOPED_TRACE(bridge::text_of(c));
    set_threads(1);
    const ChunkedResult one = bridge::run_chunked(bridge::tensors_of(c), {});
    for (const int count : {2, 4}) {
      set_threads(count);
      const ChunkedResult many = bridge::run_chunked(bridge::tensors_of(c), {});
      EXPECT_TRUE(bridge::same_bits(one.out, many.out));
      for (size_t i = 0; i < one.grads.size(); ++i)
        EXPECT_TRUE(bridge::same_bits(one.grads[i], many.grads[i])) << i;
    }
  }
  set_threads(before);
}

using ChunkedAttentionOnEveryIsa = OnEveryIsa;

TEST_F(ChunkedAttentionOnEveryIsa, IsTheRecurrence) {
  for (const ChunkedCase& c : bridge::every_rule({.len = 37, .key_dim = 7, .dim = 9}))
    each([&] { bridge::expect_recurrence(c, bridge::tensors_of(c), 64, kAllowed); });
}

ChunkedProblem problem_of(const ChunkedCase& c, int64_t chunk) {
  return {.batch = c.batch,
          .heads = c.heads,
          .len = c.len,
          .key_dim = c.key_dim,
          .dim = c.dim,
          .chunk = chunk,
          .decay = c.decay,
          .delta = c.rule == Rule::delta,
          .removal = c.rule == Rule::removal,
          .bonus = c.rule == Rule::bonus};
}

TEST(ChunkedAttention, CostIsWhatIsCounted) {
  const ScopedThreads one_thread(1);
  for (ChunkedCase c :
       bridge::every_rule({.batch = 2, .heads = 2, .len = 333, .key_dim = 24, .dim = 40}))
    for (const int64_t chunk : {20, 64}) {
      SCOPED_TRACE(bridge::text_of(c));
      c.decay_scale = chunk == 20 ? 20 : 0.1;  // and of channels, pairs one by one or factored
      const ChunkedTensors x = bridge::tensors_of(c);
      const Cost cost = chunked_cost(problem_of(c, chunk));
      const auto var = [](const Tensor& t) { return t.defined() ? Var(t, true) : Var(); };
      const ChunkedInputs in{var(x.q),    var(x.k),     var(x.v),     var(x.log_decay), {},
                             var(x.beta), var(x.bonus), var(x.erase), var(x.remove)};
      double before = counters().flops;
      const Var out = chunked_attention(in, {{}, chunk});
      EXPECT_DOUBLE_EQ(counters().flops - before, cost.flops);
      before = counters().flops;
      out.backward(out.value());
      EXPECT_DOUBLE_EQ(counters().flops - before, cost.backward_flops);
      const NoGrad no_grad;
      reset_memory_peak();
      const int64_t live = memory_use().live_total;
      chunked_attention(in, {{}, chunk});
      EXPECT_EQ(static_cast<double>(memory_use().peak_total - live), cost.peak_bytes);
    }
}

TEST(ChunkedAttention, RefusesWhatDoesNotFit) {
  const ChunkedCase c{.decay = Decay::step, .batch = 2, .heads = 3, .len = 5, .key_dim = 4};
  const ChunkedTensors t = bridge::tensors_of(c);
  const ChunkedInputs x{Var(t.q), Var(t.k), Var(t.v), Var(t.log_decay)};
  const auto refuses = [](const ChunkedInputs& in, const ChunkedOptions& options,
                          const std::string& words) {
    EXPECT_TRUE(says(fault_of([&] { chunked_attention(in, options); }), words));
  };
  refuses(x, {{}, 0}, "chunk 0");
  refuses(x, {{1}, 64}, "1 lengths for a batch of 2");
  refuses(x, {{1, 6}, 64}, "length 6");
  ChunkedInputs changed = x;
  changed.k = Var(Tensor::zeros({2, 3, 5, 3}));
  refuses(changed, {}, "k of [2, 3, 5, 3]");
  changed = x;
  changed.log_decay = Var(Tensor::zeros({2}));
  refuses(changed, {}, "log_decay of [2]");
  changed = x;
  changed.beta = Var(Tensor::zeros({2, 3, 5}));
  refuses(changed, {}, "beta of [2, 3, 5]");
  changed = x;
  changed.beta = Var(Tensor::zeros({2, 3, 5, 1}));
  changed.bonus = Var(Tensor::zeros({3, 4}));
  refuses(changed, {}, "exclude each other");
  changed = x;
  changed.erase = changed.log_decay = Var(Tensor::zeros({2, 3, 5, 4}));
  refuses(changed, {}, "erase without remove");
  changed.remove = changed.erase, changed.log_decay = x.log_decay;
  refuses(changed, {}, "log_decay of [2, 3, 5, 1]");
  changed.log_decay = Var(Tensor::zeros({3}));
  refuses(changed, {}, "of each head beside a removal");
}

TEST(ChunkedAttention, ScaleMultipliesOutputsAndGradients) {
  for (const ChunkedCase& c : bridge::every_rule(
           {.batch = 2, .heads = 2, .len = 70, .key_dim = 5, .dim = 3, .lengths = {70, 20}})) {
    SCOPED_TRACE(bridge::text_of(c));
    const ChunkedTensors x = bridge::tensors_of(c);
    const ChunkedResult one = bridge::run_chunked(x, {c.lengths, 64}),
                        half = bridge::run_chunked(x, {c.lengths, 64, 0.5});
    for (int64_t i = 0; i < one.out.size(); ++i) EXPECT_EQ(half.out[i], one.out[i] / 2);
    for (size_t g = 0; g < one.grads.size(); ++g)
      for (int64_t i = 0; i < one.grads[g].size(); ++i)
        EXPECT_EQ(half.grads[g][i], one.grads[g][i] / 2) << g;
  }
}

}  // namespace
}  // namespace attn::chunked_attention_test
