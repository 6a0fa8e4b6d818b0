// Sums and exponentials of a tile's log-decays against long double, on each instruction set.
#include "core/simd/channel_decay.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::channel_decay_test {
namespace {

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

}  // namespace
}  // namespace attn::channel_decay_test
