// The row kernels of ops against sums and functions in long double, on each instruction set, at
// lengths around whole vectors; and that the switch between the sets reaches every one of them.
#include "core/simd/row_ops.h"

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::row_ops_test {
namespace {

using Real = long double;
using Row = std::vector<real>;

constexpr Real kUnit = static_cast<Real>(kEpsilon);
const std::vector<int64_t> kLengths = {0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 257};

Row normal_row(int64_t n, const char* name, double scale = 1) {
  const Tensor t = Tensor::normal({n}, rng(17, name), scale);
  return {t.values().begin(), t.values().end()};
}

class RowOps : public OnEveryIsa {};

TEST_F(RowOps, Sums) {
  each([] {
    for (const int64_t n : kLengths) {
      const Row x = normal_row(n, "x"), y = normal_row(n, "y");
      Real sum = 0, dot = 0, size = 0, both = 0, most = -kInfinity;
      for (size_t j = 0; j < x.size(); ++j) {
        sum += x[j], size += std::fabs(x[j]), dot += static_cast<Real>(x[j]) * y[j];
        both += std::fabs(static_cast<Real>(x[j]) * y[j]), most = std::max<Real>(most, x[j]);
      }
      const Real roundings = static_cast<Real>(n) / 2 * kUnit;  // one an addition
      EXPECT_LE(std::fabs(sum_in_row(x.data(), n) - sum), roundings * size) << n;
      EXPECT_LE(std::fabs(row_dot(x.data(), y.data(), n) - dot), (roundings + kUnit) * both) << n;
      EXPECT_EQ(max_in_row(x.data(), n), static_cast<real>(most)) << n;
    }
    Row holed = normal_row(40, "x");
    holed[39] = std::numeric_limits<real>::quiet_NaN();
    EXPECT_EQ(max_in_row(holed.data(), 40), max_in_row(holed.data(), 39)) << "NaN is passed over";
  });
}

TEST_F(RowOps, SumsOfRowsAndColumns) {
  each([] {
    constexpr int64_t kRows = 7, kStride = 40;
    for (const int64_t n : {int64_t{1}, int64_t{8}, int64_t{33}}) {
      const Row x = normal_row(kRows * kStride, "x"), y = normal_row(kRows * kStride, "y");
      Row dots(kRows), sums(static_cast<size_t>(n + 1), real(1));
      dots_of_rows(kRows, n, x.data(), kStride, y.data(), kStride, dots.data());
      for (int64_t i = 0; i < kRows; ++i)
        EXPECT_EQ(dots[static_cast<size_t>(i)],
                  row_dot(x.data() + i * kStride, y.data() + i * kStride, n));
      add_column_sums(sums.data(), x.data(), kRows, n, kStride);
      for (int64_t j = 0; j < n; ++j) {
        Real want = 1, size = 1;
        for (int64_t i = 0; i < kRows; ++i) {
          const real each_one = x[static_cast<size_t>(i * kStride + j)];
          want += each_one, size += std::fabs(each_one);
        }
        EXPECT_LE(std::fabs(sums[static_cast<size_t>(j)] - want), kRows * kUnit * size);
      }
      EXPECT_EQ(sums.back(), 1) << "nothing behind the row is touched";
    }
  });
}

// to[j] of one kernel that maps numbers; nothing behind the row may change.
Row mapped(const Row& x, const std::function<void(int64_t, const real*, real*)>& kernel) {
  Row to(x.size() + 1, real(7));
  kernel(std::ssize(x), x.data(), to.data());
  EXPECT_EQ(to.back(), real(7));
  to.pop_back();
  return to;
}

TEST_F(RowOps, ExponentialsOverTheWholeRange) {
  each([] {
    Row x;
    const double low = kIsDouble ? -708 : -87.3, high = kIsDouble ? 709 : 88.7;
    for (double at = low; at < high; at += 0.00917) x.push_back(static_cast<real>(at));
    const Row e =
        mapped(x, [](int64_t n, const real* from, real* to) { exp_row(n, from, 1, 0, to); });
    for (size_t j = 0; j < x.size(); ++j)
      ASSERT_LE(std::fabs(e[j] / std::exp(static_cast<Real>(x[j])) - 1),
                kIsDouble ? 4.5e-16L : 1.2e-7L)
          << x[j];
    const real end = std::numeric_limits<real>::infinity(), beyond = kIsDouble ? 710 : 89;
    Row ends = {0, -beyond, -end, beyond, end, std::numeric_limits<real>::quiet_NaN()};
    exp_row(6, ends.data(), 1, 0, ends.data());
    EXPECT_EQ(ends[0], 1);
    EXPECT_EQ(ends[1], 0);
    EXPECT_EQ(ends[2], 0);
    EXPECT_EQ(ends[3], end);
    EXPECT_EQ(ends[4], end);
    EXPECT_TRUE(std::isnan(ends[5]));
  });
}

TEST_F(RowOps, ExponentialsOfARowAndTheirSums) {
  each([] {
    for (const int64_t n : kLengths) {
      const Row x = normal_row(n, "x");
      real sum = 0;
      const Row e = mapped(x, [&](int64_t count, const real* from, real* to) {
        sum = exp_row(count, from, 2, real(0.5), to);
      });
      Real want = 0;
      for (size_t j = 0; j < x.size(); ++j) {
        const Real at = std::exp(2 * static_cast<Real>(x[j]) - 0.5L);
        ASSERT_LE(std::fabs(e[j] - at), (2 + std::fabs(x[j])) * 2 * kUnit * at);
        want += at;
      }
      EXPECT_LE(std::fabs(sum - want), static_cast<Real>(n + 10) * kUnit * want) << n;
      if (n == 0) {
        EXPECT_EQ(log_sum_row(n, x.data()), -kInfinity);
        continue;
      }
      Real all = 0;
      for (const real at : x) all += std::exp(static_cast<Real>(at));
      EXPECT_NEAR(log_sum_row(n, x.data()), std::log(all), static_cast<double>(20 * kUnit)) << n;
    }
  });
}

TEST_F(RowOps, SquashedNumbers) {
  each([] {
    Row x = normal_row(1000, "x", 4);
    for (const real more : {real(-200), real(200), real(0), real(1e-5), real(-1e-3), real(0.17)})
      x.push_back(more);
    const Row s = mapped(x, sigmoid_row), t = mapped(x, tanh_row), e = mapped(x, elu_row);
    for (size_t j = 0; j < x.size(); ++j) {
      const Real at = x[j];
      ASSERT_LE(std::fabs(s[j] - 1 / (1 + std::exp(-at))), 2 * kUnit) << at;
      ASSERT_LE(std::fabs(t[j] - std::tanh(at)), 8 * kUnit * std::fabs(std::tanh(at))) << at;
      ASSERT_LE(std::fabs(e[j] - (at > 0 ? at : std::expm1(at))), 2 * kUnit * (1 + (at > 0) * at))
          << at;
    }
  });
}

TEST_F(RowOps, SoftplusIsExactToItsLastDigits) {
  each([] {
    Row x = normal_row(1000, "x", 4);
    for (const real far : {real(-80), real(-30), real(200), real(0), real(-1e-9)}) x.push_back(far);
    const Row s =
        mapped(x, [](int64_t n, const real* from, real* to) { softplus_row(n, from, 1, 1, to); });
    const Row t = mapped(x, [](int64_t n, const real* from, real* to) {
      softplus_row(n, from, -1, real(-0.5), to);
    });
    const auto want = [](Real at) {
      return std::fmax(at, Real(0)) + std::log1p(std::exp(-std::fabs(at)));
    };
    for (size_t j = 0; j < x.size(); ++j) {
      const Real at = x[j];
      constexpr Real kLeast = std::numeric_limits<real>::min();  // below, e^x is 0
      ASSERT_LE(std::fabs(s[j] - want(at)), 4 * kUnit * want(at) + kLeast) << at;
      ASSERT_LE(std::fabs(t[j] + want(-at) / 2), 2 * kUnit * want(-at) + kLeast) << at;
    }
    Row ends = {-kInfinity, kInfinity, std::numeric_limits<real>::quiet_NaN()};
    softplus_row(3, ends.data(), 1, 1, ends.data());
    EXPECT_EQ(ends[0], 0);
    EXPECT_EQ(ends[1], kInfinity);
    EXPECT_TRUE(std::isnan(ends[2]));
  });
}

TEST_F(RowOps, SoftmaxAndItsGradient) {
  each([] {
    constexpr int64_t kRows = 3;
    for (const int64_t n : {int64_t{1}, int64_t{7}, int64_t{100}}) {
      Row x = normal_row(kRows * n, "x"), g = normal_row(kRows * n, "g"), y(x.size()), d(x.size());
      for (int64_t j = 0; j < n; ++j) x[static_cast<size_t>(n + j)] = -kInfinity;  // hides a row
      softmax_rows(kRows, n, x.data(), y.data());
      softmax_rows_backward(kRows, n, y.data(), g.data(), d.data());
      for (const size_t i : {size_t{0}, size_t{2}}) {
        Real total = 0, along = 0;
        const size_t at = i * static_cast<size_t>(n), end = at + static_cast<size_t>(n);
        for (size_t j = at; j < end; ++j) total += std::exp(static_cast<Real>(x[j]));
        for (size_t j = at; j < end; ++j) along += std::exp(static_cast<Real>(x[j])) / total * g[j];
        for (size_t j = at; j < end; ++j) {
          const Real p = std::exp(static_cast<Real>(x[j])) / total;
          ASSERT_LE(std::fabs(y[j] - p), 20 * kUnit * p);
          ASSERT_LE(std::fabs(d[j] - p * (g[j] - along)), 60 * kUnit * p);
        }
      }
      for (int64_t j = n; j < 2 * n; ++j) ASSERT_EQ(y[static_cast<size_t>(j)], 0);
    }
  });
}

struct GeluRows {
  Row value, derivative;
};
GeluRows gelu_of(const Row& x) {
  GeluRows all = {Row(x.size()), Row(x.size())};
  Row from = x;
  gelu_rows(1, std::ssize(x), {from.data()}, nullptr, {all.value.data()}, {all.derivative.data()},
            true);
  return all;
}

TEST_F(RowOps, GeluIsCloseToTheExactValueOverItsWholeRange) {
  each([] {
    Row x;
    for (double at = -13; at < 13; at += 0.00173) x.push_back(static_cast<real>(at));
    const GeluRows got = gelu_of(x);
    for (size_t j = 0; j < x.size(); ++j) {
      const Real z = x[j], below = 0.5L * std::erfc(-z / std::sqrt(2.0L));
      const Real density = std::exp(-z * z / 2) / std::sqrt(2 * static_cast<Real>(M_PI));
      // A few roundings, and that of the argument of e^(-x²/2) or erfc(x/√2), which they raise to
      // x².
      const Real units = (4 + z * z) * kUnit;
      ASSERT_LE(std::fabs(got.value[j] - z * below), units * std::fabs(z) * below) << z;
      ASSERT_LE(std::fabs(got.derivative[j] - (below + z * density)),
                units * (below + std::fabs(z) * density))
          << z;
      // Where the value matters beside others of size 1: two units in the last place.
      ASSERT_LE(std::fabs(got.value[j] - z * below), 2 * kUnit * std::max(1.0L, std::fabs(z))) << z;
    }
  });
}

TEST_F(RowOps, GeluEndsWhereNumbersEnd) {
  each([] {
    constexpr real kEnd = std::numeric_limits<real>::infinity();
    const Row x = {real(-14), real(-40), real(-1e10), real(-1e37), real(-1e38), -kEnd};
    Row mirrored = x;
    for (real& at : mirrored) at = -at;
    const GeluRows low = gelu_of(x), high = gelu_of(mirrored);
    for (size_t j = 0; j < x.size(); ++j) {
      EXPECT_NEAR(static_cast<double>(low.value[j]), 0, 1e-36) << x[j];
      EXPECT_NEAR(static_cast<double>(low.derivative[j]), 0, 1e-36) << x[j];
      EXPECT_EQ(high.value[j], -x[j]);
      EXPECT_EQ(high.derivative[j], real(1)) << -x[j];
    }
    const GeluRows none = gelu_of({std::numeric_limits<real>::quiet_NaN()});
    EXPECT_TRUE(std::isnan(none.value[0]));
    EXPECT_TRUE(std::isnan(none.derivative[0]));
  });
}

TEST_F(RowOps, GeluOfBlocksWithABias) {
  each([] {
    constexpr int64_t kRows = 3, kCols = 21, kStride = 30;
    Row x = normal_row(kRows * kStride, "x"), y(x.size(), real(7)), s(x.size(), real(2));
    const Row bias = normal_row(kCols, "bias");
    gelu_rows(kRows, kCols, {x.data(), kStride}, bias.data(), {y.data(), kStride},
              {s.data(), kStride});
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kStride; ++j) {
        const auto at = static_cast<size_t>(i * kStride + j);
        if (j >= kCols) {
          ASSERT_EQ(y[at], 7);
          ASSERT_EQ(s[at], 2);
          continue;
        }
        const GeluRows want = gelu_of({x[at] + bias[static_cast<size_t>(j)]});
        ASSERT_EQ(y[at], want.value[0]);
        ASSERT_EQ(s[at], 2 * want.derivative[0]) << "multiplied";
      }
  });
}

std::vector<std::pair<const char*, Row>> all_results() {
  constexpr int64_t kRows = 4, n = 203;
  const Row x = normal_row(kRows * n, "x"), g = normal_row(kRows * n, "g"),
            gain = normal_row(n, "gain");
  std::vector<std::pair<const char*, Row>> all;
  Row row_sums, row_dots;  // of many counts: one may be the same by chance
  for (int64_t count = 100; count < n; ++count) {
    row_sums.push_back(sum_in_row(x.data(), count));
    row_dots.push_back(row_dot(x.data(), g.data(), count));
  }
  all.push_back({"row_sum", row_sums});
  all.push_back({"row_dot", row_dots});
  Row dots(kRows), out(x.size()), more(x.size());
  dots_of_rows(kRows, n, x.data(), n, g.data(), n, dots.data());
  all.push_back({"dots_of_rows", dots});
  exp_row(n, x.data(), 1, 0, out.data());
  all.push_back({"exp_row", out});
  Row logs;
  for (int64_t count = 100; count < n; ++count) logs.push_back(log_sum_row(count, x.data()));
  all.push_back({"log_sum_row", logs});
  sigmoid_row(kRows * n, x.data(), out.data());
  all.push_back({"sigmoid_row", out});
  tanh_row(kRows * n, x.data(), out.data());
  all.push_back({"tanh_row", out});
  softplus_row(kRows * n, x.data(), 1, 1, out.data());
  all.push_back({"softplus_row", out});
  elu_row(kRows * n, x.data(), out.data());
  all.push_back({"elu_row", out});
  softmax_rows(kRows, n, x.data(), out.data());
  all.push_back({"softmax_rows", out});
  softmax_rows_backward(kRows, n, x.data(), g.data(), more.data());
  all.push_back({"softmax_rows_backward", more});
  if (!kIsDouble) all.push_back({"gelu_rows", gelu_of(x).value});  // double takes it from std::
  Row stats(2 * kRows), sums(2 * n);
  layer_norm_rows(kRows, n, x.data(), gain.data(), g.data(), real(1e-3), out.data(), stats.data());
  all.push_back({"layer_norm_rows", out});
  layer_norm_rows_backward(kRows, n, x.data(), stats.data(), g.data(), gain.data(), more.data(),
                           false, sums.data(), sums.data() + n);
  all.push_back({"layer_norm_rows_backward", more});
  Row value = x, gradient = g, first = x, second(x.size(), real(0.3));
  adamw_row(std::ssize(x),
            {real(0.9), real(0.99), real(0.1), real(0.01), real(1e-2), real(1e-8), 1}, value.data(),
            gradient.data(), first.data(), second.data());
  all.push_back({"adamw_row", value});
  return all;
}

TEST_F(RowOps, TheSwitchReachesEveryKernel) { expect_that_each_switches(all_results); }

}  // namespace
}  // namespace attn::row_ops_test
