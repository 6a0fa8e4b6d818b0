// The rows of tiled attention on every instruction set, against the standard library in double.
#include "core/simd/softmax_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/base/rng.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::softmax_rows_test {
namespace {

constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();

using SoftmaxRows = OnEveryIsa;

TEST_F(SoftmaxRows, PowersOfTwoWithinTwoUlpOverTheWholeRange) {
  each([] {
    const double low = kIsDouble ? -1022 : -126;
    std::vector<real> x(kRowMultiple);
    const real zero = 0;
    for (double at = low; at <= 0; at += kRowMultiple * 0.00917) {
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<real>(std::min(0.0, at + static_cast<double>(i) * 0.00917));
      const std::vector<real> from = x;
      weight_rows(1, kRowMultiple, x.data(), kRowMultiple, &zero);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_LE(std::abs(double(x[i]) / std::exp2(double(from[i])) - 1), 2 * double(kEpsilon))
            << from[i];
    }
  });
}

TEST_F(SoftmaxRows, Ends) {
  each([] {
    std::vector<real> x(kRowMultiple, real(0));
    x[1] = -kInfinity, x[2] = kNaN, x[3] = kIsDouble ? -1023 : -127, x[4] = real(-1e30);
    const real zero = 0;
    weight_rows(1, kRowMultiple, x.data(), kRowMultiple, &zero);
    EXPECT_EQ(x[0], 1);
    EXPECT_EQ(x[1], 0);
    EXPECT_TRUE(std::isnan(x[2]));
    EXPECT_EQ(x[3], 0);
    EXPECT_EQ(x[4], 0);
    for (const double beyond : {0.2, 0.5, 0.7}) {  // the normal range
      x[0] = static_cast<real>((kIsDouble ? -1022 : -126) - beyond);
      weight_rows(1, kRowMultiple, x.data(), kRowMultiple, &zero);
      EXPECT_GE(x[0], 0);
      EXPECT_LT(x[0], std::numeric_limits<real>::min());
    }
    real sees_nothing = kInfinity;
    std::vector<real> any(kRowMultiple, real(3));
    weight_rows(1, kRowMultiple, any.data(), kRowMultiple, &sees_nothing);
    for (const real value : any) EXPECT_EQ(value, 0);
  });
}

// Three pieces of a row, one after the other, some hidden: the row_sum and the shrunken weights
// must be those of the whole row.
TEST_F(SoftmaxRows, RunningMaximumAndMass) {
  each([] {
    constexpr int64_t kRows = 7, kCols = 48, kStride = 50, kPieces = 3;
    std::vector<real> row_max(kRows, -kInfinity), row_sum(kRows, real(0)), rescale(kRows);
    std::vector<std::vector<double>> logits(kRows), weights(kRows);
    Rng random = rng(1, "logits");
    for (int64_t piece = 0; piece < kPieces; ++piece) {
      std::vector<real> x(kRows * kStride, real(9));
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < kCols; ++j) {
          const bool hidden = i == 6 || (i == 5 && piece == 0) || random.uniform() < 0.2;
          const real value = hidden ? -kInfinity : static_cast<real>(20 * random.normal());
          x[static_cast<size_t>(i * kStride + j)] = value;
          logits[static_cast<size_t>(i)].push_back(double(value));
        }
      online_softmax_rows(kRows, kCols, x.data(), kStride, row_max.data(), row_sum.data(),
                          rescale.data());
      EXPECT_EQ(rescale[6], 0) << "as long as nothing is seen, sums are not read";
      for (int64_t i = 0; i < kRows; ++i) {
        auto& row = weights[static_cast<size_t>(i)];
        for (double& weight : row) weight *= double(rescale[static_cast<size_t>(i)]);
        for (int64_t j = 0; j < kCols; ++j)
          row.push_back(double(x[static_cast<size_t>(i * kStride + j)]));
        EXPECT_EQ(x[static_cast<size_t>(i * kStride + kCols)], 9) << "beyond the row";
      }
    }
    for (size_t i = 0; i < kRows; ++i) {
      const double most = *std::max_element(logits[i].begin(), logits[i].end());
      EXPECT_EQ(double(row_max[i]), most);
      double total = 0;
      for (size_t j = 0; j < logits[i].size(); ++j) {
        const double want = logits[i][j] == -INFINITY ? 0 : std::exp2(logits[i][j] - most);
        EXPECT_NEAR(weights[i][j], want, 4 * double(kEpsilon)) << i << ", " << j;
        total += want;
      }
      EXPECT_NEAR(double(row_sum[i]), total, 10 * double(kEpsilon) * total);
    }
  });
}

TEST_F(SoftmaxRows, NaNShowsInItsRowAlone) {
  each([] {
    for (const real others : {real(1), -kInfinity})
      for (int64_t at = 0; at < kRowMultiple; ++at) {
        std::vector<real> x(2 * kRowMultiple, others);
        x[static_cast<size_t>(at)] = kNaN;
        std::vector<real> row_max(2, -kInfinity), row_sum(2, real(0)), rescale(2);
        online_softmax_rows(2, kRowMultiple, x.data(), kRowMultiple, row_max.data(), row_sum.data(),
                            rescale.data());
        EXPECT_TRUE(std::isnan(row_sum[0])) << at;
        EXPECT_EQ(row_sum[1], others == 1 ? kRowMultiple : 0);
      }
  });
}

TEST_F(SoftmaxRows, TermsOfACompleteRow) {
  each([] {
    Rng random = rng(3, "complete rows");
    for (const int64_t n : {1, 5, 15, 16, 17, 63, 64, 65, 200}) {
      std::vector<real> x;
      for (int64_t j = 0; j < n; ++j) x.push_back(static_cast<real>(30 + 10 * random.normal()));
      x.back() += 25;  // the maximum is in the part behind the last whole vector
      std::vector<real> terms = x;
      terms.push_back(9);
      const real sum = exp_from_max_row(n, terms.data());
      const double most = static_cast<double>(*std::max_element(x.begin(), x.end()));
      double total = 0;
      for (size_t j = 0; j < x.size(); ++j) {
        const double want = std::exp(double(x[j]) - most);
        // Products with log2(e) are rounded: as many units as the exponent is large.
        EXPECT_NEAR(double(terms[j]), want, (8 + 2 * most) * double(kEpsilon) * want) << n;
        total += want;
      }
      EXPECT_NEAR(double(sum), total, (8 + 2 * most) * double(kEpsilon) * total);
      EXPECT_EQ(terms.back(), 9) << "beyond the row";
      terms = x;
      terms[static_cast<size_t>(n / 2)] = kNaN;
      EXPECT_TRUE(std::isnan(exp_from_max_row(n, terms.data()))) << n;
    }
  });
}

TEST_F(SoftmaxRows, LogitGradients) {
  each([] {
    constexpr int64_t kRows = 3, kCols = 32;
    Rng random = rng(2, "slopes");
    std::vector<real> x, grads;
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      x.push_back(static_cast<real>(random.normal() - 3));
      grads.push_back(static_cast<real>(random.normal()));
    }
    x[5] = -kInfinity;
    const std::vector<real> logits = x, given = grads, log_sum = {real(0.5), real(1), real(2)},
                            dots = {real(0.25), real(-1), real(0)};
    logit_grad_rows(kRows, kCols, x.data(), grads.data(), kCols, log_sum.data(), dots.data(),
                    real(0.3));
    for (size_t i = 0; i < x.size(); ++i) {
      const double row = double(log_sum[i / kCols]), dot = double(dots[i / kCols]);
      const double weight = std::exp2(double(logits[i]) - row);
      EXPECT_NEAR(double(x[i]), weight, 4 * double(kEpsilon) * weight);
      EXPECT_NEAR(double(grads[i]), 0.3 * weight * (double(given[i]) - dot), 4 * double(kEpsilon));
    }
    EXPECT_EQ(grads[5], 0);
  });
}

}  // namespace
}  // namespace attn::softmax_rows_test
