// The row kernels of single variants against their mathematics in long double, on each instruction
// set, at lengths around whole vectors; and that the switch between the sets reaches each.
#include "core/simd/attention_rows.h"

#include <cmath>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::attention_rows_test {
namespace {

using Real = long double;
using Row = std::vector<real>;

// Values here are of order 1, through up to five functions of two roundings each.
constexpr double kClose = 30 * static_cast<double>(kEpsilon);

Row normal_row(int64_t n, const char* name, double scale = 1) {
  const Tensor t = Tensor::normal({n}, rng(19, name), scale);
  return {t.values().begin(), t.values().end()};
}

Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }

class AttentionRows : public OnEveryIsa {};

TEST_F(AttentionRows, Lstm) {
  each([] {
    for (const int64_t n : {1, 8, 21}) {
      const auto d = static_cast<size_t>(n);
      const Row sums = normal_row(4 * n, "sums"), before = normal_row(n, "before");
      const Row dh = normal_row(n, "dh"), dc = normal_row(n, "dc");
      Row a(5 * d), h(d);
      std::copy(sums.begin(), sums.end(), a.begin());
      lstm_row(n, a.data(), before.data(), h.data());
      Row back = a, carried = dc;
      lstm_row_backward(n, back.data(), before.data(), dh.data(), carried.data());
      for (size_t j = 0; j < d; ++j) {
        const Real i = sigmoid(sums[j]), f = sigmoid(sums[d + j]),
                   g = std::tanh(Real(sums[2 * d + j])), o = sigmoid(sums[3 * d + j]),
                   c = f * before[j] + i * g, t = std::tanh(c);
        const Real want[] = {i, f, g, o, c};
        for (size_t k = 0; k < 5; ++k) EXPECT_NEAR(a[k * d + j], want[k], kClose);
        EXPECT_NEAR(h[j], o * t, kClose);
        const Real slope = dc[j] + dh[j] * o * (1 - t * t);
        EXPECT_NEAR(back[j], slope * g * i * (1 - i), kClose);
        EXPECT_NEAR(back[d + j], slope * before[j] * f * (1 - f), kClose);
        EXPECT_NEAR(back[2 * d + j], slope * i * (1 - g * g), kClose);
        EXPECT_NEAR(back[3 * d + j], dh[j] * t * o * (1 - o), kClose);
        EXPECT_NEAR(carried[j], slope * f, kClose);
      }
    }
  });
}

TEST_F(AttentionRows, Gru) {
  each([] {
    for (const int64_t n : {1, 8, 21}) {
      const auto d = static_cast<size_t>(n);
      const Row sums = normal_row(3 * n, "sums"), s = normal_row(3 * n, "state"),
                bias = normal_row(n, "bias"), before = normal_row(n, "before"),
                dh = normal_row(n, "dh");
      Row a(4 * d), h(d);
      std::copy(sums.begin(), sums.end(), a.begin());
      gru_row(n, a.data(), s.data(), bias.data(), before.data(), h.data());
      Row back = a, carried = dh;
      gru_row_backward(n, back.data(), before.data(), carried.data());
      for (size_t j = 0; j < d; ++j) {
        const Real r = sigmoid(Real(sums[j]) + s[j]), z = sigmoid(Real(sums[d + j]) + s[d + j]);
        const Real inner = Real(s[2 * d + j]) + bias[j];
        const Real fresh = std::tanh(sums[2 * d + j] + r * inner);
        const Real want[] = {r, z, fresh, inner};
        for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(a[k * d + j], want[k], kClose);
        EXPECT_NEAR(h[j], (1 - z) * fresh + z * before[j], kClose);
        const Real slope = dh[j] * (1 - z) * (1 - fresh * fresh);
        EXPECT_NEAR(back[j], slope * inner * r * (1 - r), kClose);
        EXPECT_NEAR(back[d + j], dh[j] * (before[j] - fresh) * z * (1 - z), kClose);
        EXPECT_NEAR(back[2 * d + j], slope * r, kClose);
        EXPECT_NEAR(back[3 * d + j], slope, kClose);
        EXPECT_NEAR(carried[j], dh[j] * z, kClose);
      }
    }
  });
}

// Inputs of a query and a panel; `large`: numbers 2a and not e^2a.
struct Additive {
  static constexpr int64_t kUnits = 12;
  Row a = normal_row(kUnits, "a"), b = normal_row(kUnits * kPanel, "b"), query = a, panel = b;
  Row weight = normal_row(kUnits, "weight"), grads = normal_row(kPanel, "slopes");
  AdditiveRows rows;

  explicit Additive(bool large) {
    for (Row* kept : {&query, &panel})
      for (real& x : *kept) x = large ? 2 * x : std::exp(2 * x);
    rows = {large, kUnits, query.data(), panel.data()};
  }
  Real share(int64_t c, int64_t j) const {  // r of unit c and key j
    const Real sum = Real(a[static_cast<size_t>(c)]) + b[static_cast<size_t>(c * kPanel + j)];
    return 1 / (1 + std::exp(2 * sum));
  }
};

TEST_F(AttentionRows, AdditiveScoresAndSlopes) {
  each([] {
    for (const bool large : {false, true}) {
      const Additive in(large);
      Row out(kPanel), keys(Additive::kUnits * kPanel, real(1)), query(Additive::kUnits),
          unit(Additive::kUnits);
      additive_scores(in.rows, in.weight.data(), out.data());
      additive_grad(in.rows, in.grads.data(), keys.data(), query.data(), unit.data());
      for (int64_t j = 0; j < kPanel; ++j) {
        Real want = 0;
        for (int64_t c = 0; c < Additive::kUnits; ++c)
          want += in.weight[static_cast<size_t>(c)] * in.share(c, j);
        EXPECT_NEAR(out[static_cast<size_t>(j)], want, 4 * kClose);
      }
      for (int64_t c = 0; c < Additive::kUnits; ++c) {
        Real grad_query = 0, grad_unit = 0;
        for (int64_t j = 0; j < kPanel; ++j) {
          const Real r = in.share(c, j), slope = in.grads[static_cast<size_t>(j)];
          grad_query += slope * r * (1 - r), grad_unit += slope * r;
          EXPECT_NEAR(keys[static_cast<size_t>(c * kPanel + j)], 1 + slope * r * (1 - r), kClose);
        }
        EXPECT_NEAR(query[static_cast<size_t>(c)], grad_query, 4 * kClose);
        EXPECT_NEAR(unit[static_cast<size_t>(c)], grad_unit, 8 * kClose);
      }
    }
  });
}

TEST_F(AttentionRows, AUnitOfADecoder) {
  each([] {
    for (const int64_t n : {1, 13, 64}) {
      const Row b = normal_row(n, "b");
      Row logits(b.size() + 1, real(1));
      add_additive_unit(n, real(0.3), b.data(), real(-2), logits.data());
      for (size_t j = 0; j < b.size(); ++j)
        EXPECT_NEAR(logits[j], 1 - 2 / (1 + std::exp(2 * (Real(real(0.3)) + b[j]))), kClose);
      EXPECT_EQ(logits.back(), 1);
    }
  });
}

TEST_F(AttentionRows, Relu) {
  each([] {
    constexpr int64_t kCols = 19, kStride = 25;
    const Row before = normal_row(3 * kStride, "x"), up = normal_row(kCols, "slope");
    Row x = before, slope = up;
    x[2] = std::nan("");
    relu_rows(3, kCols, x.data(), kStride);
    EXPECT_TRUE(std::isnan(x[2]));
    x[2] = before[2] < 0 ? 0 : before[2];
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(x[i], i % kStride < kCols ? std::max(before[i], real(0)) : before[i]);
    relu_grad_row(kCols, x.data() + kStride, real(3), slope.data());
    for (size_t j = 0; j < kCols; ++j)
      EXPECT_EQ(slope[j], x[kStride + j] > 0 ? 3 * up[j] : real(0));
  });
}

void expect_hidden_buckets(int64_t all) {
  constexpr int64_t kKeys = 48, kStride = 64;
  Rng random = rng(23, "codes");
  std::vector<int32_t> keys(static_cast<size_t>(all * kStride)), query(static_cast<size_t>(all));
  for (int32_t& code : keys) code = static_cast<int32_t>(random.below(3));
  for (int32_t& code : query) code = 1 + static_cast<int32_t>(random.below(2));
  const Row logs = normal_row(all + 1, "logs"), before = normal_row(kKeys, "logits");
  for (const auto& [least, most] : {std::pair<int32_t, int32_t>{0, 1}, {-1, 2}, {1, 3}, {0, 0}})
    for (int64_t round = 0; round < all; ++round) {
      Row logits = before;
      mask_buckets(kKeys, {all, kStride, keys.data(), query.data(), least, most}, round,
                   logs.data(), logits.data());
      for (size_t j = 0; j < kKeys; ++j) {
        size_t count = 0;
        bool seen = false;
        for (int64_t r = 0; r < all; ++r) {
          const int32_t below =
              query[static_cast<size_t>(r)] - keys[static_cast<size_t>(r * kStride) + j];
          const bool shown = below >= least && below <= most;
          count += shown;
          if (r == round) seen = shown;
        }
        ASSERT_EQ(logits[j], seen ? before[j] - logs[count] : -kInfinity) << round << " " << j;
      }
    }
}

// Numbers of rounds around those whose logarithms fit a vector.
TEST_F(AttentionRows, HiddenBuckets) {
  each([] {
    for (const int64_t rounds : {1, 3, 4, 5, 7, 8, 15, 16, 21}) expect_hidden_buckets(rounds);
  });
}

std::vector<std::pair<const char*, Row>> all_results() {
  constexpr int64_t n = 203;
  const Row x = normal_row(n, "x"), before = normal_row(n, "before");
  std::vector<std::pair<const char*, Row>> all;
  Row a = normal_row(5 * n, "a"), h(n), out(kPanel), keys(Additive::kUnits * kPanel), query(12),
      unit(12);
  lstm_row(n, a.data(), before.data(), h.data());
  all.push_back({"lstm_row", h});
  lstm_row_backward(n, a.data(), before.data(), x.data(), h.data());
  all.push_back({"lstm_row_backward", a});
  Row b = normal_row(4 * n, "b");
  gru_row(n, b.data(), a.data(), x.data(), before.data(), h.data());
  all.push_back({"gru_row", h});
  gru_row_backward(n, b.data(), before.data(), h.data());
  all.push_back({"gru_row_backward", b});
  const Additive in(false);
  additive_scores(in.rows, in.weight.data(), out.data());
  all.push_back({"additive_scores", out});
  additive_grad(in.rows, in.grads.data(), keys.data(), query.data(), unit.data());
  all.push_back({"additive_grad: keys", keys});
  all.push_back({"additive_grad: query", query});
  all.push_back({"additive_grad: unit", unit});
  add_additive_unit(kPanel, real(0.3), in.b.data(), real(-2), out.data());
  all.push_back({"add_additive_unit", out});
  return all;
}

TEST_F(AttentionRows, TheSwitchReachesEveryKernel) { expect_that_each_switches(all_results); }

}  // namespace
}  // namespace attn::attention_rows_test
