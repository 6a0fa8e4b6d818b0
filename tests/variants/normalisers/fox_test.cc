// fox against its equations in double, with all gradients; open, constant and closed gates; which
// gates a key passes; decoding; 65536 positions in float.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"
#include "variants/softmax/softmax.h"

namespace attn::fox_test {
namespace {

using stepwise::Array;
using stepwise::build;
using stepwise::Index;

double log_sigmoid(double x) { return -std::log1p(std::exp(-std::fabs(x))) + std::fmin(x, 0.0); }

// The weight of a key is multiplied by the gates of all later steps up to the query's.
Array twin(const std::vector<Array>& x, const std::vector<int64_t>& lengths) {
  const Array &q = x[0], &k = x[1], &v = x[2], &gates = x[3];
  Array out(q.batch, q.heads, q.len, v.dim);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index i = 0; i < q.len; ++i) {
        const Index valid = lengths.empty() ? k.len : lengths[static_cast<size_t>(b)];
        double kept = 1, total = 0;
        for (Index j = i; j >= 0; --j) {
          if (j >= valid) continue;
          const double weight = kept * std::exp(oracle::dot(q.row(b, h, i), k.row(b, h, j)) /
                                                std::sqrt(static_cast<double>(q.dim)));
          total += weight;
          for (Index c = 0; c < v.dim; ++c) out.at(b, h, i, c) += weight * v.at(b, h, j, c);
          kept *= std::exp(log_sigmoid(gates.at(b, h, j, 0)));
        }
        for (Index c = 0; c < v.dim && total > 0; ++c) out.at(b, h, i, c) /= total;
      }
  return out;
}

TEST(Fox, EqualsItsEquations) {
  for (const int64_t len : {1, 2, 17, 50})
    for (const bool padded : {false, true}) {
      const std::vector<int64_t> lengths =
          padded ? std::vector<int64_t>{len, len / 2} : std::vector<int64_t>{};
      const auto fox = build("fox", 2, 5, len);
      const stepwise::Drawn x({2, 2, len, 5}, {1}, lengths);
      const Var out =
          fox->forward(x.vars[0], x.vars[1], x.vars[2], {true, lengths}, std::array{x.vars[3]});
      std::vector<Array> arrays = bridge::arrays_of(x.all);
      EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, lengths).x), 50 * kEpsilon);
      const Tensor seed = bridge::normal(out.shape(), "seed");
      out.backward(seed);
      bridge::expect_gradients(x.all, x.grads(), seed, [&](const std::vector<Array>& moved) {
        return twin(moved, lengths);
      });
    }
}

Tensor answer(const stepwise::Drawn& x, real gate) {
  x.all[3].fill(gate);
  const auto fox = build("fox", x.all[0].dim(1), x.all[0].dim(3), x.all[0].dim(2));
  return fox->forward(x.vars[0], x.vars[1], x.vars[2], {true, {}}, std::array{x.vars[3]}).value();
}

TEST(Fox, OpenGatesGiveSoftmaxAttention) {
  const stepwise::Drawn x({2, 2, 300, 8}, {1}, {});
  const Tensor full = softmax_attention(x.vars[0], x.vars[1], x.vars[2], {.causal = true}).value();
  EXPECT_LE(bridge::relative_error(answer(x, 100), bridge::array_of(full).x), 4 * kEpsilon);
}

// A constant gate is ALiBi with the slope -log f.
TEST(Fox, AConstantGateIsALinearBias) {
  const int64_t len = 300;
  const stepwise::Drawn x({2, 2, len, 8}, {1}, {});
  const double slope = -log_sigmoid(1.5);
  const Tensor table({2, 2 * len - 1});
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t r = 0; r < 2 * len - 1; ++r)
      table[h * (2 * len - 1) + r] = static_cast<real>(slope * static_cast<double>(r - len + 1));
  const Tensor alibi =
      distance_softmax_attention(x.vars[0], x.vars[1], x.vars[2], Var(table), {.causal = true})
          .value();
  EXPECT_LE(bridge::relative_error(answer(x, real(1.5)), bridge::array_of(alibi).x), 40 * kEpsilon);
}

TEST(Fox, ClosedGatesGiveTheOwnValue) {
  const stepwise::Drawn x({2, 2, 70, 8}, {1}, {});
  EXPECT_TRUE(bridge::same_bits(answer(x, -500), x.all[2]));
  EXPECT_TRUE(bridge::same_bits(answer(x, -kInfinity), x.all[2]));
}

// Key j does not pass the gates of steps up to j: those of the first j steps change its weight in
// no row, and the first gate of all changes nothing.
TEST(Fox, RegressionTheGateOfAStepDoesNotCloseItsOwnKey) {
  const stepwise::Drawn x({1, 1, 30, 4}, {1}, {});
  const Tensor before = answer(x, 1).clone();
  const auto fox = build("fox", 1, 4, 30);
  x.all[3][0] = -7;
  EXPECT_LE(
      bridge::relative_error(
          fox->forward(x.vars[0], x.vars[1], x.vars[2], {true, {}}, std::array{x.vars[3]}).value(),
          bridge::array_of(before).x),
      40 * kEpsilon);
  x.all[3][12] = -100;  // rows from 12 on see the keys from 12 on
  const Tensor after =
      fox->forward(x.vars[0], x.vars[1], x.vars[2], {true, {}}, std::array{x.vars[3]}).value();
  const auto tail = [](const Var& t) { return slice(t, 2, 12, 30); };
  const Tensor alone = fox->forward(tail(x.vars[0]), tail(x.vars[1]), tail(x.vars[2]), {true, {}},
                                    std::array{tail(x.vars[3])})
                           .value();
  EXPECT_LE(bridge::relative_error(slice(Var(after), 2, 12, 30).value(), bridge::array_of(alone).x),
            4 * kEpsilon);
}

TEST(Fox, DecodesAsItAnswersInParallel) {
  constexpr int64_t kLength = 700;  // several blocks of the cache and parts of it
  const auto fox = build("fox", 2, 6, kLength);
  const NoGrad no_grad;
  const stepwise::Drawn x({2, 2, kLength, 6}, {1}, {});
  const Var want =
      fox->forward(x.vars[0], x.vars[1], x.vars[2], {.causal = true}, std::array{x.vars[3]});
  const auto rows = [&](size_t which, int64_t from, int64_t to) {
    return slice(x.vars[which], 2, from, to).value();
  };
  for (const int count : {1, 3}) {
    const ScopedThreads scoped(count);
    const auto decoder = fox->decoder(2, kLength);
    EXPECT_EQ(decoder->state_bytes(), 4 * kLength * int64_t{12 * sizeof(real) + sizeof(double)});
    decoder->extend(rows(1, 0, 5), rows(2, 0, 5), {}, std::array{rows(3, 0, 5)});
    for (int64_t i = 5; i < kLength; ++i) {
      const Tensor out({2, 2, 1, 6});
      decoder->step(rows(0, i, i + 1), rows(1, i, i + 1), rows(2, i, i + 1), out,
                    std::array{rows(3, i, i + 1)});
      ASSERT_LE(bridge::relative_error(out, bridge::array_of(slice(want, 2, i, i + 1).value()).x),
                60 * kEpsilon)
          << i;
    }
  }
}

// A gate that is shut hides all before it, and later differences of sums are those of open gates.
TEST(Fox, RegressionShutGatesDecodeAsInParallel) {
  constexpr int64_t kLength = 40;
  const auto fox = build("fox", 1, 4, kLength);
  const NoGrad no_grad;
  for (const real shut : {-kInfinity, real(-1e30)}) {
    const stepwise::Drawn x({1, 1, kLength, 4}, {1}, {});
    for (const int64_t at : {7, 8, 23}) x.all[3][at] = shut;
    const Var want =
        fox->forward(x.vars[0], x.vars[1], x.vars[2], {.causal = true}, std::array{x.vars[3]});
    const auto decoder = fox->decoder(1, kLength);
    const auto row = [&](size_t which, int64_t i) {
      return slice(x.vars[which], 2, i, i + 1).value();
    };
    for (int64_t i = 0; i < kLength; ++i) {
      const Tensor out({1, 1, 1, 4});
      decoder->step(row(0, i), row(1, i), row(2, i), out, std::array{row(3, i)});
      ASSERT_LE(bridge::relative_error(out, bridge::array_of(slice(want, 2, i, i + 1).value()).x),
                60 * kEpsilon)
          << shut << " step " << i;
    }
  }
}

// Some rows of 65536 and their gradients against double: gates of all sizes, from 1 - 1e-5 on.
TEST(Fox, RowsOfALongSequenceAreAsInDouble) {
  if (kIsDouble) GTEST_SKIP() << "sums in double differ by their order";
  constexpr Index kLen = 65536, kDim = 4;
  const stepwise::Drawn x({1, 1, kLen, kDim}, {1}, {});
  Rng random = rng(1, "openness");
  for (real& gate : x.all[3].values()) gate = static_cast<real>(random.uniform(2, 12));
  const auto fox = build("fox", 1, kDim, kLen);
  const Var out = fox->forward(x.vars[0], x.vars[1], x.vars[2], {true, {}}, std::array{x.vars[3]});
  const Tensor seed = Tensor::zeros(out.shape());
  const std::array<Index, 5> rows = {0, 300, 20001, 40000, kLen - 1};
  std::vector<double> closed;  // sums of log-gates
  for (Index i = 0; i < kLen; ++i)
    closed.push_back((i ? closed.back() : 0) + log_sigmoid(static_cast<double>(x.all[3][i])));
  const Array q = bridge::array_of(x.all[0]), k = bridge::array_of(x.all[1]),
              v = bridge::array_of(x.all[2]);
  Array grad_k(1, 1, kLen, kDim), grad_v(1, 1, kLen, kDim), grad_gate(1, 1, kLen, 1);
  for (const Index i : rows) {
    std::vector<double> weights;
    double total = 0;
    for (Index j = 0; j <= i; ++j) {
      weights.push_back(std::exp(oracle::dot(q.row(0, 0, i), k.row(0, 0, j)) / 2 +
                                 closed[static_cast<size_t>(i)] - closed[static_cast<size_t>(j)]));
      total += weights.back();
    }
    std::vector<double> want(kDim, 0.0);
    for (Index j = 0; j <= i; ++j)
      for (Index c = 0; c < kDim; ++c)
        want[static_cast<size_t>(c)] +=
            (weights[static_cast<size_t>(j)] /= c == 0 ? total : 1) * v.at(0, 0, j, c);
    for (Index c = 0; c < kDim; ++c) seed[i * kDim + c] = static_cast<real>(c % 2 ? 1 : -0.5);
    EXPECT_LE(bridge::relative_error(slice(out, 2, i, i + 1).value(), want), 100 * kEpsilon) << i;
    double dots = 0, before = 0;
    for (Index c = 0; c < kDim; ++c) dots += (c % 2 ? 1 : -0.5) * want[static_cast<size_t>(c)];
    for (Index j = 0; j <= i; ++j) {
      const double weight = weights[static_cast<size_t>(j)];
      if (j > 0)
        grad_gate.at(0, 0, j, 0) +=
            before / (1 + std::exp(static_cast<double>(x.all[3][j])));  // d log σ(x)/dx
      double slope = -dots;
      for (Index c = 0; c < kDim; ++c) slope += (c % 2 ? 1 : -0.5) * v.at(0, 0, j, c);
      before += weight * slope;
      for (Index c = 0; c < kDim; ++c) {
        grad_k.at(0, 0, j, c) += weight * slope * q.at(0, 0, i, c) / 2;
        grad_v.at(0, 0, j, c) += weight * (c % 2 ? 1 : -0.5);
      }
    }
  }
  out.backward(seed);
  EXPECT_LE(bridge::relative_error(x.vars[1].grad(), grad_k.x), 300 * kEpsilon);
  EXPECT_LE(bridge::relative_error(x.vars[2].grad(), grad_v.x), 300 * kEpsilon);
  EXPECT_LE(bridge::relative_error(x.vars[3].grad(), grad_gate.x), 1000 * kEpsilon);
}

}  // namespace
}  // namespace attn::fox_test
