// Kernels of rows on every instruction set: decays of channels, pairs, the largest entries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <vector>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "core/simd/channel_decay.h"
#include "core/simd/isa.h"
#include "core/simd/paired_rows.h"
#include "core/simd/top_rows.h"
#include "core/tensor/tensor.h"
#include "tests/core/simd/on_every_isa.h"
#include "tests/said.h"

namespace attn::row_kernels_test {
namespace {

// The run-time choice of instruction set; ATTN_ISA in the environment holds every test to one.

class HeldIsa final : public testing::Environment {
  void SetUp() override {
    if (const char* name = std::getenv("ATTN_ISA")) hold_isa(name);
  }
};
[[maybe_unused]] const testing::Environment* const held =
    testing::AddGlobalTestEnvironment(new HeldIsa);

TEST(Isa, HoldsToWhatIsNamed) {
  const std::string before = isa();
  const std::vector<std::string> all = isas();
  ASSERT_EQ(std::count(all.begin(), all.end(), "scalar"), 1);
  EXPECT_EQ(isa(), before) << "asking changes nothing";
  for (const std::string& name : all) {
    hold_isa(name);
    EXPECT_EQ(isa(), name);
  }
  const std::string compiled = compiled_isa();
  hold_isa("best");
  EXPECT_EQ(compiled_isa(), compiled) << "what is compiled does not follow the switch";
  EXPECT_FALSE(compiled.empty());
  EXPECT_EQ(isa(), all.front());
  EXPECT_TRUE(says(fault_of([&] { hold_isa("sse9"); }), "scalar"));
  EXPECT_EQ(isa(), all.front()) << "a refusal changes nothing";
  hold_isa("scalar");
  EXPECT_THROW(hold_isa("sse9"), Error);
  EXPECT_EQ(isa(), "scalar") << "nor what is held";
  EXPECT_EQ(isas(), all);
  EXPECT_EQ(isa(), "scalar");
  hold_isa(before);
}

// Sums and exponentials of a tile's log-decays against long double, on each instruction set.

using Real = long double;
using Row = std::vector<real>;

constexpr Real kUnit = static_cast<Real>(kEpsilon);

class ChannelDecay : public OnEveryIsa {};

Row log_decays(int64_t rows, int64_t cols) {
  const Tensor t = Tensor::normal({rows * cols}, rng(17, "log-decays"));
  Row x(t.values().begin(), t.values().end());
  for (size_t i = 0; i < x.size(); ++i)  // some steps forget much, the others hardly
    x[i] = -std::fabs(x[i]) * (i % 7 == 0 ? real(3) : real(1e-3));
  return x;
}

TEST_F(ChannelDecay, SumsAreRoundedOnce) {
  each([] {
    for (const int64_t cols : {1, 7, 16, 33, 64}) {
      constexpr int64_t kRows = 16;
      const Row x = log_decays(kRows, cols);
      Row totals(static_cast<size_t>(cols) + 1, real(5));
      const real least = column_totals(kRows, cols, x.data(), totals.data());
      Real want_least = 0;
      for (int64_t j = 0; j < cols; ++j) {
        Real want = 0;
        for (int64_t i = 0; i < kRows; ++i) want += x[static_cast<size_t>(i * cols + j)];
        ASSERT_LE(std::fabs(totals[static_cast<size_t>(j)] - want),
                  0.51L * kUnit * std::fabs(want));
        want_least = std::min<Real>(want_least, totals[static_cast<size_t>(j)]);
      }
      EXPECT_EQ(least, static_cast<real>(want_least));
      EXPECT_EQ(totals.back(), 5) << "what lies behind is not touched";
    }
  });
}

TEST_F(ChannelDecay, FactorsAreExponentialsOfTheSums) {
  each([] {
    for (const int64_t cols : {1, 7, 16, 33, 64})
      for (const bool shifts : {false, true}) {
        constexpr int64_t kRows = 5;
        const Row x = log_decays(kRows, cols);
        Row shift(static_cast<size_t>(cols));
        for (size_t j = 0; j < shift.size(); ++j) shift[j] = real(-0.1) * static_cast<real>(j);
        Row decay(static_cast<size_t>((kRows + 1) * cols)), grow(static_cast<size_t>(kRows * cols));
        channel_factors(kRows, cols, x.data(), shifts ? shift.data() : nullptr, decay.data(),
                        grow.data());
        for (int64_t j = 0; j < cols; ++j) {
          Real sum = shifts ? -shift[static_cast<size_t>(j)] : real(0);
          for (int64_t i = -1; i < kRows; ++i) {
            if (i >= 0) sum += x[static_cast<size_t>(i * cols + j)];
            const Real allowed = (3 + std::fabs(sum)) * kUnit;  // the sum is rounded to real
            const Real falls = decay[static_cast<size_t>((i + 1) * cols + j)];
            ASSERT_LE(std::fabs(falls / std::exp(sum) - 1), allowed) << i << " " << j;
            if (i < 0) continue;
            const Real grows = grow[static_cast<size_t>(i * cols + j)];
            ASSERT_LE(std::fabs(grows / std::exp(-sum) - 1), allowed) << i << " " << j;
          }
        }
      }
  });
}

// Pairs of features on every instruction set, at every length of a tail, against the standard
// library in double.

using PairedRows = OnEveryIsa;

constexpr int64_t kRows = 3;

std::vector<real> numbers(int64_t cols, int64_t stride, double scale) {
  std::vector<real> x(static_cast<size_t>(kRows * stride), real(7));
  Rng random = rng(7, "numbers");
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      x[static_cast<size_t>(i * stride + j)] = static_cast<real>(scale * random.normal());
  return x;
}

TEST_F(PairedRows, SinesAndCosines) {
  each([&] {
    for (const int64_t cols : {1, 3, 8, 15, 16, 17, 33})
      for (const double scale : {0.1, 1.0, 30.0, 1000.0}) {
        const int64_t stride = 2 * cols + 1;
        const std::vector<real> x = numbers(cols, stride, scale);
        std::vector<real> out = x;
        const real factors[kRows] = {1, real(0.5), real(-3)};
        sin_cos_rows(kRows, cols, out.data(), stride, factors, real(0.25));
        for (int64_t i = 0; i < kRows; ++i) {
          const auto at = [&](int64_t j) { return static_cast<size_t>(i * stride + j); };
          for (int64_t j = 0; j < cols; ++j) {
            // The product is rounded once, as in the kernel.
            const double y = static_cast<double>(factors[i] * x[at(j)]);
            EXPECT_NEAR(static_cast<double>(out[at(j)]), std::sin(y) / 4, kEpsilon / 2) << y;
            EXPECT_NEAR(static_cast<double>(out[at(cols + j)]), std::cos(y) / 4, kEpsilon / 2) << y;
          }
          EXPECT_EQ(out[at(2 * cols)], 7);
        }
      }
  });
}

TEST_F(PairedRows, HugeAnglesStayInRangeAndNanStays) {
  each([&] {
    std::vector<real> x = {std::numeric_limits<real>::quiet_NaN(), real(1e20), real(-3e9), 0, 0, 0};
    const real one = 1;
    sin_cos_rows(1, 3, x.data(), 6, &one, 1);
    EXPECT_TRUE(std::isnan(x[0]) && std::isnan(x[3]));
    for (const size_t i : {size_t{1}, size_t{2}, size_t{4}, size_t{5}})
      EXPECT_TRUE(std::abs(x[i]) <= 1 + kEpsilon) << x[i];
  });
}

TEST_F(PairedRows, SoftmaxesOfBothSigns) {
  each([&] {
    for (const int64_t cols : {1, 3, 8, 15, 16, 17, 33})
      for (const double scale : {0.1, 1.0, 30.0, 1e4}) {
        const int64_t stride = 2 * cols + 1;
        const std::vector<real> x = numbers(cols, stride, scale);
        std::vector<real> out = x;
        softmax_pair_rows(kRows, cols, out.data(), stride);
        for (int64_t i = 0; i < kRows; ++i)
          for (const int sign : {1, -1}) {
            const auto at = [&](int64_t j) { return static_cast<size_t>(i * stride + j); };
            double top = -INFINITY, sum = 0;
            const auto logit = [&](int64_t j) { return sign * static_cast<double>(x[at(j)]); };
            for (int64_t j = 0; j < cols; ++j) top = std::max(top, logit(j));
            for (int64_t j = 0; j < cols; ++j) sum += std::exp(logit(j) - top);
            for (int64_t j = 0; j < cols; ++j)
              EXPECT_NEAR(static_cast<double>(out[at(sign > 0 ? j : cols + j)]),
                          std::exp(logit(j) - top) / sum, 8 * kEpsilon);
            EXPECT_EQ(out[at(2 * cols)], 7);
          }
      }
  });
}

// The choice of the largest scores of a row against a stable sort, on each instruction set: rows
// that rise, fall, tie, or hold infinities and NaN, in pieces of any size.

// NaN is larger than all.
double key(real x) { return std::isnan(x) ? INFINITY : static_cast<double>(x); }

std::vector<int64_t> wanted(const Row& row, int64_t most) {
  std::vector<int64_t> places(row.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    return key(row[static_cast<size_t>(a)]) > key(row[static_cast<size_t>(b)]);
  });
  places.resize(static_cast<size_t>(std::min(most, std::ssize(row))));
  std::sort(places.begin(), places.end());
  return places;
}

std::vector<int64_t> chosen(const Row& row, int64_t most, int64_t piece) {
  std::vector<real> work(static_cast<size_t>(TopList::reals(most)), real(-77));
  TopList list = TopList::in(work.data(), most);
  for (int64_t at = 0; at < std::ssize(row); at += piece)
    add_to_top(std::min(piece, std::ssize(row) - at), row.data() + at, at, list);
  finish_top(list);
  std::vector<int64_t> places;
  for (int64_t e = 0; e < list.size; ++e) places.push_back(static_cast<int64_t>(list.places[e]));
  return places;
}

std::vector<int64_t> chosen_whole(const Row& row, int64_t most) {
  std::vector<real> work(static_cast<size_t>(TopList::reals(most)), real(-77));
  std::vector<int32_t> places(row.size());
  places.resize(static_cast<size_t>(
      top_places(std::ssize(row), row.data(), most, places.data(), work.data())));
  return {places.begin(), places.end()};
}

std::vector<int64_t> chosen_few(Row row, int64_t most) {
  std::vector<int32_t> places(static_cast<size_t>(most));
  places.resize(static_cast<size_t>(top_few(std::ssize(row), row.data(), most, places.data())));
  return {places.begin(), places.end()};
}

std::vector<Row> rows_of(int64_t n) {
  const Tensor normal = Tensor::normal({n}, rng(23, "scores"));
  Row random(normal.values().begin(), normal.values().end());
  std::vector<Row> all = {random};
  std::sort(random.begin(), random.end());
  all.push_back(random);
  std::reverse(random.begin(), random.end());
  all.push_back(random);
  all.emplace_back(n, real(0.5));
  Row few = all[0], infinite = all[0], holes = all[0], least(static_cast<size_t>(n), -kInfinity);
  for (real& x : few) x = std::round(x);
  for (size_t j = 0; j < infinite.size(); ++j) {
    if (j % 3 == 1) infinite[j] = -kInfinity;
    if (j % 50 == 7) infinite[j] = kInfinity;
    if (j % 17 == 4) holes[j] = std::numeric_limits<real>::quiet_NaN();
    if (j % 41 == 40) least[j] = real(j);
  }
  for (const Row& row : {few, infinite, holes, least}) all.push_back(row);
  return all;
}

class TopRows : public OnEveryIsa {};

TEST_F(TopRows, AreThoseOfAStableSort) {
  each([] {
    for (const int64_t n : {1, 2, 15, 16, 17, 64, 127, 129, 300, 1000, 2500})
      for (const Row& row : rows_of(n))
        for (const int64_t most : {1, 2, 7, 32, 100, 130, 700})
          for (const int64_t piece : {int64_t{64}, int64_t{384}, n})
            ASSERT_EQ(chosen(row, most, piece), wanted(row, most))
                << most << " of " << n << " in pieces of " << piece;
  });
}

TEST_F(TopRows, OfAWholeRowAreThoseOfAStableSort) {
  each([] {
    for (const int64_t n : {1, 15, 64, 129, 1000})
      for (const Row& row : rows_of(n))
        for (const int64_t most : {1, 7, 130})
          ASSERT_EQ(chosen_whole(row, most), wanted(row, most)) << most << " of " << n;
  });
}

TEST_F(TopRows, FewAreThoseOfAStableSort) {
  each([] {
    for (const int64_t n : {1, 2, 15, 16, 17, 64, 129, 300})
      for (const Row& row : rows_of(n))
        for (const int64_t most : {1, 2, 3, 16, 50})
          ASSERT_EQ(chosen_few(row, most), wanted(row, most)) << most << " of " << n;
  });
}

}  // namespace
}  // namespace attn::row_kernels_test
