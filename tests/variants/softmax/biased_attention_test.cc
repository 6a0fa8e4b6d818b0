// Softmax attention with a bias or within a band.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/softmax/band.h"
#include "variants/softmax/softmax.h"

namespace attn::biased_attention_test {
namespace {

// Softmax attention with biases of gates and of distances against sums in double: causal, padded,
// cross-attention, windows; gradients of every input; a closed gate's small gradient keeps its
// digits.

using oracle::Array;
using oracle::Index;

struct Case {
  int64_t q_len, kv_len, window;
  bool causal, padded;
};

std::vector<Case> cases(bool causal_only) {
  std::vector<Case> all;
  for (const bool causal : {true, false})
    for (const bool padded : {false, true})
      for (const int64_t window : {int64_t{-1}, int64_t{7}})
        for (const auto& [q_len, kv_len] : {std::pair<int64_t, int64_t>{37, 37},
                                            {5, 33},
                                            {34, 9},
                                            {1, 1},
                                            {101, 263},
                                            {530, 530}})
          if (causal || !causal_only) all.push_back({q_len, kv_len, window, causal, padded});
  return all;
}

// One head at a time: outputs, and with a seed the gradients of q, k, v and of each pair's bias.
struct Textbook {
  Array out, grad_q, grad_k, grad_v;
  std::vector<double> grad_bias;  // [batch, heads, q_len, kv_len]
};
using Bias = std::function<double(Index b, Index h, Index i, Index j)>;  // i: position of the query

Textbook textbook(const Array& q, const Array& k, const Array& v, const oracle::Visibility& seen,
                  const Bias& bias, const Array& seed) {
  Textbook r{Array(q.batch, q.heads, q.len, v.dim),
             Array(q.batch, q.heads, q.len, q.dim),
             Array(q.batch, q.heads, k.len, q.dim),
             Array(q.batch, q.heads, k.len, v.dim),
             {}};
  r.grad_bias.assign(static_cast<size_t>(q.batch * q.heads * q.len * k.len), 0.0);
  const double tau = 1 / std::sqrt(static_cast<double>(q.dim));
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h)
      for (Index i = 0; i < q.len; ++i) {
        std::vector<double> weight(static_cast<size_t>(k.len), 0.0);
        double top = -INFINITY, total = 0, dots = 0;
        const auto visible = [&](Index j) { return oracle::sees(seen, b, i, j, q.len, k.len); };
        const auto at = [](Index j) { return static_cast<size_t>(j); };
        for (Index j = 0; j < k.len; ++j)
          if (visible(j)) {
            weight[at(j)] = tau * oracle::dot(q.row(b, h, i), k.row(b, h, j)) +
                            bias(b, h, i + k.len - q.len, j);
            top = std::fmax(top, weight[at(j)]);
          }
        for (Index j = 0; j < k.len; ++j)
          if (visible(j)) total += weight[at(j)] = std::exp(weight[at(j)] - top);
        for (Index j = 0; j < k.len; ++j)
          if (visible(j)) {
            weight[at(j)] /= total;
            for (Index c = 0; c < v.dim; ++c)
              r.out.at(b, h, i, c) += weight[at(j)] * v.at(b, h, j, c);
          }
        for (Index c = 0; c < v.dim; ++c) dots += seed.at(b, h, i, c) * r.out.at(b, h, i, c);
        for (Index j = 0; j < k.len; ++j)
          if (visible(j)) {
            const double slope =
                weight[at(j)] * (oracle::dot(seed.row(b, h, i), v.row(b, h, j)) - dots);
            r.grad_bias[at(((b * q.heads + h) * q.len + i) * k.len + j)] = slope;
            for (Index c = 0; c < q.dim; ++c) {
              r.grad_q.at(b, h, i, c) += tau * slope * k.at(b, h, j, c);
              r.grad_k.at(b, h, j, c) += tau * slope * q.at(b, h, i, c);
            }
            for (Index c = 0; c < v.dim; ++c)
              r.grad_v.at(b, h, j, c) += weight[at(j)] * seed.at(b, h, i, c);
          }
      }
  return r;
}

struct Drawn {
  std::vector<Var> vars;
  std::vector<Array> arrays;
  SoftmaxOptions options;
  oracle::Visibility seen;
  Tensor seed;

  explicit Drawn(const Case& c) {
    options = {.causal = c.causal, .window = c.window};
    if (c.padded) options.kv_lengths = {c.kv_len / 2, c.kv_len - 1};
    seen = {c.causal, options.kv_lengths, c.window};
    std::vector<Tensor> inputs = {bridge::normal({2, 2, c.q_len, 5}, "q"),
                                  bridge::normal({2, 2, c.kv_len, 5}, "k"),
                                  bridge::normal({2, 2, c.kv_len, 3}, "v")};
    for (const size_t which : {1, 2})
      bridge::fill_padding(inputs[which], options.kv_lengths, bridge::kNaN);
    for (const Tensor& t : inputs) {
      vars.emplace_back(t, true);
      arrays.push_back(bridge::array_of(t));
    }
    seed = bridge::normal({2, 2, c.q_len, 3}, "seed");
  }
  // Gradients that cancel to 0 leave rounding of the size of the seed.
  void expect_close(const Tensor& got, const Array& want, double tolerance) const {
    const double size = bridge::norm(want.x) + 1e-30;
    EXPECT_LE(bridge::relative_error(got, want.x) * size,
              tolerance * (size + 0.1 * bridge::norm(bridge::array_of(seed).x)));
  }
  void compare(const Var& out, const Textbook& want) const {
    EXPECT_LE(bridge::relative_error(out.value(), want.out.x), 40 * kEpsilon);
    out.backward(seed);
    expect_close(vars[0].grad(), want.grad_q, 100 * kEpsilon);
    expect_close(vars[1].grad(), want.grad_k, 100 * kEpsilon);
    expect_close(vars[2].grad(), want.grad_v, 100 * kEpsilon);
  }
};

testing::Message trace(const Case& c) {
  return testing::Message() << c.q_len << "x" << c.kv_len << " window " << c.window << " causal "
                            << c.causal << " padded " << c.padded;
}

Bias of_gates(const Array& gates, const std::vector<int64_t>& lengths) {
  return [&gates, lengths](Index b, Index h, Index i, Index j) {
    double sum = 0;
    for (Index s = j + 1; s <= i; ++s)
      if (lengths.empty() || s < lengths[static_cast<size_t>(b)]) sum += gates.at(b, h, s, 0);
    return sum;
  };
}

TEST(GatedSoftmax, EqualsItsTextbookForwardAndBackward) {
  for (const Case& c : cases(true)) {
    SCOPED_TRACE(trace(c));
    Drawn x(c);
    const Tensor gates({2, 2, c.kv_len, 1});
    Rng random = rng(3, "gates");  // some open, some closed
    for (real& g : gates.values()) g = static_cast<real>(-std::exp(2 * random.normal() - 3));
    bridge::fill_padding(gates, x.options.kv_lengths, bridge::kNaN);
    const Array of = bridge::array_of(gates);
    const Var log_gates(gates, true);
    const Textbook want = textbook(x.arrays[0], x.arrays[1], x.arrays[2], x.seen,
                                   of_gates(of, x.options.kv_lengths), bridge::array_of(x.seed));
    x.compare(gated_softmax_attention(x.vars[0], x.vars[1], x.vars[2], log_gates, x.options), want);
    Array grad(2, 2, c.kv_len, 1);
    for (Index b = 0; b < 2; ++b)
      for (Index h = 0; h < 2; ++h)
        for (Index i = 0; i < c.q_len; ++i) {
          double before = 0;  // Σ_{j<s} of row i
          for (Index s = 1; s <= i + c.kv_len - c.q_len; ++s) {
            before +=
                want.grad_bias[static_cast<size_t>(((b * 2 + h) * c.q_len + i) * c.kv_len + s - 1)];
            if (!c.padded || s < x.options.kv_lengths[static_cast<size_t>(b)])
              grad.at(b, h, s, 0) += before;
          }
        }
    x.expect_close(log_gates.grad(), grad, 200 * kEpsilon);
  }
}

TEST(DistanceSoftmax, EqualsItsTextbookForwardAndBackward) {
  for (const Case& c : cases(false)) {
    SCOPED_TRACE(trace(c));
    Drawn x(c);
    const int64_t size = c.q_len + c.kv_len - 1;
    const Var table(bridge::normal({2, size}, "table", 2), true);
    const Array of = bridge::array_of(table.value());  // [1, 1, 2, size]
    const Bias bias = [&](Index, Index h, Index i, Index j) {
      return of.at(0, 0, h, j - i + c.kv_len - 1);
    };
    const Textbook want =
        textbook(x.arrays[0], x.arrays[1], x.arrays[2], x.seen, bias, bridge::array_of(x.seed));
    x.compare(distance_softmax_attention(x.vars[0], x.vars[1], x.vars[2], table, x.options), want);
    Array grad(1, 1, 2, size);
    for (Index b = 0; b < 2; ++b)
      for (Index h = 0; h < 2; ++h)
        for (Index i = 0; i < c.q_len; ++i)
          for (Index j = 0; j < c.kv_len; ++j)
            grad.at(0, 0, h, j - i + c.q_len - 1) +=
                want.grad_bias[static_cast<size_t>(((b * 2 + h) * c.q_len + i) * c.kv_len + j)];
    x.expect_close(table.grad(), grad, 200 * kEpsilon);
  }
}

// Gradients of biases are summed by task: any number of threads gives the same sums, and the same
// number the same bits.
TEST(BiasedSoftmax, GradientsDoNotDependOnThreads) {
  for (const bool few_keys : {false, true}) {
    const int64_t kv_len = few_keys ? 90 : 300;
    std::vector<double> first[2];
    for (const int count : {1, 2, 3, 3}) {
      const ScopedThreads scoped(count);
      const Var q(bridge::normal({1, 1, 300, 8}, "q"), true),
          k(bridge::normal({1, 1, kv_len, 8}, "k"), true),
          v(bridge::normal({1, 1, kv_len, 8}, "v"));
      const Var table(bridge::normal({1, 299 + kv_len}, "table"), true);
      const Tensor closed = bridge::normal({1, 1, kv_len, 1}, "gates");
      for (real& g : closed.values()) g = -std::abs(g) / 8;
      const Var gates(closed, true);
      const Tensor seed = bridge::normal(q.shape(), "seed");
      distance_softmax_attention(q, k, v, table, {}).backward(seed);
      gated_softmax_attention(q, k, v, gates, {.causal = true}).backward(seed);
      for (const int which : {0, 1}) {
        const Tensor grad = which ? table.grad() : gates.grad();
        if (first[which].empty())
          first[which] = bridge::array_of(grad.reshaped({1, 1, 1, grad.size()})).x;
        EXPECT_LE(bridge::relative_error(grad, first[which]), 20 * kEpsilon);
      }
    }
  }
}

// exp(-30) of a weight passes this gate: differences of sums of all pairs would leave nothing of
// the gradient.
TEST(GatedSoftmax, RegressionAClosedGateKeepsTheDigitsOfItsGradient) {
  for (const int64_t closed :
       {int64_t{1}, int64_t{100}, int64_t{255}, int64_t{256}, int64_t{299}}) {
    const int64_t len = 300;
    const Tensor gates = Tensor::full({1, 1, len, 1}, real(-0.01));
    gates[closed] = -30;
    const Var q(bridge::normal({1, 1, len, 8}, "q")), k(bridge::normal({1, 1, len, 8}, "k")),
        v(bridge::normal({1, 1, len, 8}, "v")), log_gates(gates, true);
    const Tensor seed = bridge::normal(q.shape(), "seed");
    gated_softmax_attention(q, k, v, log_gates, {.causal = true}).backward(seed);
    const Array of = bridge::array_of(gates);
    const Textbook want = textbook(bridge::array_of(q.value()), bridge::array_of(k.value()),
                                   bridge::array_of(v.value()), {.causal = true}, of_gates(of, {}),
                                   bridge::array_of(seed));
    double grad = 0, size = 0;
    for (Index i = closed; i < len; ++i)
      for (Index j = 0; j < closed; ++j) {
        grad += want.grad_bias[static_cast<size_t>(i * len + j)];
        size += std::abs(want.grad_bias[static_cast<size_t>(i * len + j)]);
      }
    ASSERT_LT(size, 1e-8);
    EXPECT_LE(std::abs(static_cast<double>(log_gates.grad()[closed]) - grad), 50 * kEpsilon * size)
        << closed;
  }
}

// Beyond all exponents: nothing of what lies before is seen, and nothing is NaN.
TEST(GatedSoftmax, AGateOfMinusInfinityHidesAllBefore) {
  const int64_t len = 40, closed = 17;
  const Tensor gates = Tensor::full({1, 1, len, 1}, real(-0.1));
  const Var q(bridge::normal({1, 1, len, 4}, "q"), true), k(bridge::normal({1, 1, len, 4}, "k")),
      v(bridge::normal({1, 1, len, 4}, "v"));
  gates[closed] = -kInfinity;
  const Var log_gates(gates, true);
  const Var out = gated_softmax_attention(q, k, v, log_gates, {.causal = true});
  out.backward(Tensor::full(out.shape(), 1));
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(out.value()[closed * 4 + i], v.value()[closed * 4 + i]);
  for (const real g : log_gates.grad().values()) EXPECT_TRUE(std::isfinite(g));
  EXPECT_EQ(log_gates.grad()[closed], 0);
}

TEST(BiasedSoftmax, RefusesWhatDoesNotFit) {
  const Var x(Tensor::zeros({1, 2, 4, 3}));
  EXPECT_THROW(gated_softmax_attention(x, x, x, Var(Tensor::zeros({1, 2, 4, 1})), {}), Error);
  EXPECT_THROW(gated_softmax_attention(x, x, x, Var(Tensor::zeros({1, 2, 3, 1})), {.causal = true}),
               Error);
  EXPECT_THROW(distance_softmax_attention(x, x, x, Var(Tensor::zeros({2, 8})), {}), Error);
}

// The division of queries into tiles: all queries once, in tiles of nearly the same size.

int64_t size(Span span) { return span.end - span.begin; }

TEST(QueryTiles, CoverEachQueryOnceInTilesThatDifferByAStrip) {
  for (const int64_t strip : {6, 12, 24})
    for (const int64_t most : {24, 96, 128, 1024})
      for (int64_t n = 1; n < 2100; n += n < 300 ? 1 : 97) {
        const QueryTiles tiles(n, nullptr, most, strip);
        int64_t next = 0, least = n, largest = 0;
        for (int64_t t = 0; t < tiles.count(); ++t) {
          const Span tile = tiles[t];
          ASSERT_EQ(tile.begin, next) << n << ", " << most << ", " << strip;
          ASSERT_EQ(tile.begin % strip, 0) << "tiles begin with a strip";
          ASSERT_GT(tile.end, tile.begin);
          next = tile.end;
          least = std::min(least, size(tile));
          largest = std::max(largest, size(tile));
        }
        ASSERT_EQ(next, n);
        ASSERT_LE(largest, std::min(tiles.rows, most + strip - 1));
        ASSERT_LT(largest - least, 2 * strip) << n << ", " << most << ", " << strip;
      }
}

TEST(QueryTiles, TwoThreadsShareALongHeadEvenly) {
  for (const int64_t n : {512, 640, 1000, 4096}) {
    const QueryTiles tiles(n, nullptr, 96, 24);
    ASSERT_EQ(tiles.count() % 2, 0);
    int64_t even = 0;
    for (int64_t t = 0; t < tiles.count(); t += 2) even += size(tiles[t]);
    EXPECT_LE(std::abs(2 * even - n), 2 * 24) << n;
  }
}

TEST(QueryTiles, StayInTheirBlock) {
  const BlockPattern pattern{.size = 50, .begin = {}, .keys = {}};
  const QueryTiles tiles(130, &pattern, 24, 6);  // blocks [0, 50), [50, 100), [100, 130)
  int64_t next = 0;
  for (int64_t t = 0; t < tiles.count(); ++t) {
    const Span tile = tiles[t];
    if (size(tile) == 0) continue;  // of the last block, which is short
    EXPECT_EQ(tile.begin, next);
    EXPECT_EQ(tile.begin / 50, (tile.end - 1) / 50);
    next = tile.end;
  }
  EXPECT_EQ(next, 130);
}

}  // namespace
}  // namespace attn::biased_attention_test
