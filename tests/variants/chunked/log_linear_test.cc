// log_linear against its recurrence in double (one state for each level, merged as a Fenwick tree),
// with all gradients; equal chunk sizes; level weights of 1 (mamba2), of level 0 alone and of one
// level (sums over a block).
#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"
#include "variants/chunked/level_attention.h"

namespace attn::log_linear_test {
namespace {

using stepwise::answer;
using stepwise::Array;
using stepwise::Index;

const real kOne = std::log(std::exp(real(1)) - 1);  // softplus gives 1

std::unique_ptr<Attention> build_log_linear(int64_t heads, int64_t dim, int64_t len,
                                            int64_t levels = 8) {
  return find_variant("log_linear").build({heads, dim, len, true, 3, {}}, {{"levels", levels}});
}

double plus(double x) { return std::log1p(std::exp(x)); }

// Before position t the levels up to the lowest binary one of t become one; then all decay, and
// level 0 is k_tᵀ·v_t. x holds q, k, v, dt, the level weights and A_log.
Array twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
  const Array &q = x[0], &k = x[1], &v = x[2];
  Array out(q.batch, q.heads, q.len, v.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      std::vector<Array> levels(static_cast<size_t>(x[4].dim), Array(1, 1, q.dim, v.dim));
      const Index valid = lengths.empty() ? q.len : lengths[static_cast<size_t>(b)];
      for (Index t = 0; t < q.len; ++t) {
        const double step = t < valid ? plus(x[3].at(b, h, t, 0)) : 0;
        if (t > 0) {
          const auto last = static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(t)));
          for (size_t l = 0; l <= last; ++l)
            for (double& s : levels[l].x)
              levels[last + 1].x[static_cast<size_t>(&s - levels[l].x.data())] += s, s = 0;
        }
        const double decay = std::exp(-std::exp(x[5].x[static_cast<size_t>(h)]) * step);
        for (size_t l = 0; l < levels.size(); ++l)
          for (Index c = 0; c < q.dim; ++c)
            for (Index j = 0; j < v.dim; ++j) {
              double& s = levels[l].at(0, 0, c, j);
              s *= decay;
              if (l == 0) s = t < valid ? step * k.at(b, h, t, c) * v.at(b, h, t, j) : 0;
              const double gate = t < valid ? x[4].at(b, h, t, static_cast<Index>(l)) : 0;
              out.at(b, h, t, j) += plus(gate) * q.at(b, h, t, c) * s;
            }
      }
    }
  return out;
}

TEST(LogLinear, EqualsItsRecurrence) {
  struct Case {
    int64_t len;
    std::vector<int64_t> lengths;
  };
  for (const Case& c : {Case{19, {}}, {75, {70, 9}}, {331, {}}}) {
    const auto attention = build_log_linear(2, 3, c.len, 10);
    const Var a_log = attention->weights()[0].value;
    const stepwise::Drawn x({2, 2, c.len, 3}, {1, 10}, c.lengths);
    const real less = c.len > 100 ? 7 : 4;  // something is left of a chunk after the next
    for (real& value : x.all[3].values()) value -= less;
    const Var out = answer(*attention, x, c.lengths);
    std::vector<Tensor> inputs = x.all;
    inputs.push_back(a_log.value().reshaped({1, 1, 1, 2}));
    std::vector<Array> arrays = bridge::arrays_of(inputs);
    EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, c.lengths).x), 100 * kEpsilon);
    const Tensor seed = bridge::normal(out.shape(), "seed");
    out.backward(seed);
    std::vector<Tensor> grads = x.grads();
    grads.push_back(a_log.grad());
    bridge::expect_gradients(
        inputs, grads, seed,
        [&](const std::vector<Array>& moved) { return twin(moved, c.lengths); }, 1e-5);
  }
}

TEST(LogLinear, StepsAreItsRecurrence) {
  const int64_t len = 150, half = 70;
  const auto attention = build_log_linear(2, 3, len, 9);
  const stepwise::Drawn x({1, 2, len, 3}, {1, 9}, {});
  for (real& value : x.all[3].values()) value -= real(4);
  std::vector<Array> arrays = bridge::arrays_of(x.all);
  arrays.push_back(bridge::array_of(attention->weights()[0].value.value().reshaped({1, 1, 1, 2})));
  const Array want = twin(arrays, {});
  const auto rows = [&](size_t i, int64_t begin, int64_t end) {
    return slice(x.vars[i], 2, begin, end).value();
  };
  const auto decoder = attention->decoder(1, len);
  EXPECT_EQ(decoder->state_bytes(), static_cast<int64_t>(2 * 9 * (9 * sizeof(real) + 8)));
  decoder->extend(rows(1, 0, half), rows(2, 0, half), {},
                  std::array{rows(3, 0, half), rows(4, 0, half)});
  const Tensor out({1, 2, 1, 3});
  for (int64_t t = half; t < len; ++t) {
    decoder->step(rows(0, t, t + 1), rows(1, t, t + 1), rows(2, t, t + 1), out,
                  std::array{rows(3, t, t + 1), rows(4, t, t + 1)});
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t c = 0; c < 3; ++c)
        EXPECT_NEAR(out[h * 3 + c], want.at(0, h, t, c), 500 * kEpsilon) << t;
  }
}

TEST(LogLinear, SixtyFiveThousandPositionsKeepTheirDigits) {
  const int64_t len = kIsDouble ? 2048 : 65536;
  const auto attention = build_log_linear(1, 4, len, 17);
  const stepwise::Drawn x({1, 1, len, 4}, {1, 17}, {});
  for (real& value : x.all[3].values()) value -= real(7);  // steps of about 1e-3
  std::vector<Array> arrays = bridge::arrays_of(x.all);
  arrays.push_back(bridge::array_of(attention->weights()[0].value.value().reshaped({1, 1, 1, 1})));
  const NoGrad no_grad;
  EXPECT_LE(bridge::relative_error(answer(*attention, x).value(), twin(arrays, {}).x),
            200 * kEpsilon);
}

TEST(LogLinear, CostIsWhatIsCounted) {
  const ScopedThreads one_thread(1);
  for (const int64_t len : {1, 64, 65, 333}) {
    const Shape rows{2, 2, len, 24};
    const Var q(bridge::normal(rows, "q"), true), v(bridge::normal(rows, "v"), true);
    const Var decay(Tensor::full(rows.with(3, 1), real(-0.1)), true);
    const Var weights(bridge::normal(rows.with(3, 10), "weights"), true);
    const Cost cost = level_cost({2, 2, len, len, 24, true}, 10);
    double before = counters().flops;
    const Var out = level_attention({q, q, v, decay, weights});
    EXPECT_DOUBLE_EQ(counters().flops - before, cost.flops);
    before = counters().flops;
    out.backward(out.value());
    EXPECT_DOUBLE_EQ(counters().flops - before, cost.backward_flops);
    const NoGrad no_grad;
    reset_memory_peak();
    const int64_t live = memory_use().live_total;
    level_attention({q, q, v, decay, weights});
    EXPECT_EQ(static_cast<double>(memory_use().peak_total - live), cost.peak_bytes);
  }
}

TEST(LogLinear, ChunkSizesAreEqual) {
  const Shape rows{1, 2, 203, 4};
  std::vector<Tensor> inputs = {
      bridge::normal(rows, "q"), bridge::normal(rows, "k"), bridge::normal(rows.with(3, 5), "v"),
      bridge::normal(rows.with(3, 1), "decay", 0.1), bridge::normal(rows.with(3, 9), "weights")};
  for (real& value : inputs[3].values()) value = -std::abs(value);
  const auto run = [&](int64_t chunk) {
    std::vector<Var> x = leaves_of(inputs, true);
    const Var out = level_attention({x[0], x[1], x[2], x[3], x[4]}, chunk);
    out.backward(bridge::normal(out.shape(), "seed"));
    std::vector<Tensor> all = {out.value()};
    for (const Var& v : x) all.push_back(v.grad());
    return all;
  };
  const std::vector<Tensor> want = run(64);
  for (const int64_t chunk : {1, 2, 16, 32}) {
    const std::vector<Tensor> got = run(chunk);
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_LE(bridge::relative_error(got[i], bridge::array_of(want[i]).x), 500 * kEpsilon)
          << i << " with chunks of " << chunk;
  }
  EXPECT_THROW(run(7), Error);  // chunks are blocks of a level
}

TEST(LogLinear, WithWeightsOfOneIsMamba2) {
  const auto attention = build_log_linear(2, 4, 200, 9);
  const auto mamba2 = find_variant("mamba2").build({2, 4, 200, true, 3, {}}, {});
  const stepwise::Drawn x({1, 2, 200, 4}, {1, 9}, {});
  for (real& value : x.all[3].values()) value -= real(4);
  x.all[4].fill(kOne);
  const Tensor want =
      mamba2->forward(x.vars[0], x.vars[1], x.vars[2], {true, {}}, std::array{x.vars[3]}).value();
  EXPECT_LE(bridge::relative_error(answer(*attention, x).value(), bridge::array_of(want).x),
            100 * kEpsilon);
}

// Without the levels above 0: o_t = Δ_t·(q_t·k_t)·v_t.
TEST(LogLinear, LevelZeroIsThePositionItself) {
  const auto attention = build_log_linear(1, 4, 100);
  const stepwise::Drawn x({1, 1, 100, 4}, {1, 8}, {});
  for (int64_t i = 0; i < x.all[4].size(); ++i) x.all[4][i] = i % 8 == 0 ? kOne : real(-200);
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]),
              dt = bridge::array_of(x.all[3]);
  const Array want = oracle::weighted_sum(
      q, bridge::array_of(x.all[2]), {.causal = true}, [&](Index b, Index h, Index i, Index j) {
        return i == j ? plus(dt.at(b, h, i, 0)) * oracle::dot(q.row(b, h, i), k.row(b, h, i)) : 0;
      });
  EXPECT_LE(bridge::relative_error(answer(*attention, x).value(), want.x), 50 * kEpsilon);
}

// Level l alone, without decay: the block of 2^(l-1) positions that ends before the last multiple
// of 2^(l-1) that is at most i, if i / 2^(l-1) is odd.
TEST(LogLinear, OneLevelIsASumOverABlock) {
  for (const int64_t level : {1, 3, 7, 8}) {
    const auto attention = build_log_linear(1, 4, 200, 9);
    attention->weights()[0].value.set_value(Tensor::full({1}, -200));  // no decay
    const stepwise::Drawn x({1, 1, 200, 4}, {1, 9}, {});
    x.all[3].fill(kOne);  // steps of 1
    for (int64_t i = 0; i < x.all[4].size(); ++i) x.all[4][i] = i % 9 == level ? kOne : real(-200);
    const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]);
    const Index size = Index(1) << (level - 1);
    const Array want = oracle::weighted_sum(
        q, bridge::array_of(x.all[2]), {.causal = true}, [&](Index b, Index h, Index i, Index j) {
          const bool seen = i / size % 2 == 1 && j / size == i / size - 1;
          return seen ? oracle::dot(q.row(b, h, i), k.row(b, h, j)) : 0;
        });
    EXPECT_LE(bridge::relative_error(answer(*attention, x).value(), want.x), 50 * kEpsilon);
  }
}

TEST(LogLinear, RefusesMorePositionsThanLevels) {
  EXPECT_NO_THROW(build_log_linear(1, 4, 128));
  EXPECT_THROW(build_log_linear(1, 4, 129), Error);
  EXPECT_THROW(build_log_linear(1, 4, 128)->decoder(1, 129), Error);
  EXPECT_EQ(levels_of(1), 1);
  EXPECT_EQ(levels_of(128), 8);
  EXPECT_EQ(levels_of(129), 9);
}

}  // namespace
}  // namespace attn::log_linear_test
