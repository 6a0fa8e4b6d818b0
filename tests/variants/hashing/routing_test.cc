// routing against an oracle of its own, which counts ranks instead of sorting; its limits; and that
// the choice of members hides the future.
#include <gtest/gtest.h>

#include "tests/variants/pattern_check.h"
#include "variants/api/counted_cost.h"
#include "variants/api/following.h"

namespace attn::routing_test {
namespace {

using bridge::Given;

struct Setup {
  int64_t clusters, window;
  bool balanced, causal;
  std::vector<int64_t> lengths = {};

  Given given() const {
    return {{"clusters", clusters},
            {"window", window},
            {"assignment", std::string(balanced ? "balanced" : "nearest")}};
  }
  int64_t valid(int64_t b, int64_t n) const {
    return lengths.empty() ? n : lengths[static_cast<size_t>(b)];
  }
};

oracle::Array normalised(const oracle::Array& x) {
  oracle::Array out = x;
  const auto dim = static_cast<size_t>(x.dim);
  for (size_t row = 0; row < x.x.size(); row += dim) {
    double sum = 0, squares = 0;
    for (size_t c = 0; c < dim; ++c) sum += x.x[row + c], squares += x.x[row + c] * x.x[row + c];
    const double mean = sum / static_cast<double>(dim),
                 variance = squares / static_cast<double>(dim) - mean * mean;
    for (size_t c = 0; c < dim; ++c)
      out.x[row + c] = (x.x[row + c] - mean) / std::sqrt(variance + 1e-5);
  }
  return out;
}

// members(b, h, c, i): whether centroid c holds position i, by the rows of `by`.
double along(const oracle::Array& by, const Tensor& mu, int64_t b, int64_t h, int64_t c,
             int64_t i) {
  double sum = 0;
  for (int64_t e = 0; e < by.dim; ++e)
    sum += by.at(b, h, i, e) * static_cast<double>(mu[(h * mu.dim(1) + c) * by.dim + e]);
  return sum;
}

bool is_chosen(const oracle::Array& by, const Tensor& mu, int64_t b, int64_t h, int64_t c,
               int64_t i, int64_t valid, int64_t window) {
  int64_t ahead = 0;
  for (int64_t j = 0; j < valid; ++j) {
    const double mine = along(by, mu, b, h, c, i), theirs = along(by, mu, b, h, c, j);
    ahead += theirs > mine || (theirs == mine && j < i);
  }
  return ahead < window;
}

int64_t nearest(const oracle::Array& by, const Tensor& mu, int64_t b, int64_t h, int64_t i) {
  int64_t best = 0;
  for (int64_t c = 1; c < mu.dim(1); ++c)
    if (along(by, mu, b, h, c, i) > along(by, mu, b, h, best, i)) best = c;
  return best;
}

// Members are chosen by the inputs `by`: differences must not move them.
oracle::Array expected(const std::vector<oracle::Array>& inputs,
                       const std::vector<oracle::Array>& by_inputs, const Tensor& mu,
                       const Setup& s) {
  const oracle::Array x = normalised(inputs[0]), y = s.balanced ? normalised(inputs[1]) : x,
                      x_by = normalised(by_inputs[0]),
                      y_by = s.balanced ? normalised(by_inputs[1]) : x_by;
  const oracle::Array& v = inputs[2];
  oracle::Array out(x.batch, x.heads, x.len, x.dim);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h) {
      const int64_t valid = s.valid(b, x.len);
      const int64_t window = s.window > 0 ? s.window : (valid + s.clusters - 1) / s.clusters;
      std::vector<int64_t> cluster, rank;
      for (int64_t i = 0; i < valid; ++i) {
        cluster.push_back(nearest(x_by, mu, b, h, i));
        rank.push_back(std::count(cluster.begin(), cluster.end(), cluster.back()) - 1);
      }
      for (int64_t i = 0; i < valid; ++i) {
        double times = 0;
        for (int64_t c = 0; c < s.clusters; ++c) {
          if (s.balanced ? !is_chosen(x_by, mu, b, h, c, i, valid, window)
                         : cluster[static_cast<size_t>(i)] != c)
            continue;
          ++times;
          double total = 0;
          std::vector<double> sum(static_cast<size_t>(x.dim));
          for (int64_t j = 0; j < valid; ++j) {
            const int64_t apart =
                rank[static_cast<size_t>(i)] / window - rank[static_cast<size_t>(j)] / window;
            const bool sees = s.balanced ? is_chosen(y_by, mu, b, h, c, j, valid, window)
                                         : cluster[static_cast<size_t>(j)] == c &&
                                               (apart == 0 || apart == 1) && (!s.causal || j <= i);
            if (!sees) continue;
            double logit = 0;
            for (int64_t e = 0; e < x.dim; ++e) logit += x.at(b, h, i, e) * y.at(b, h, j, e);
            const double weight = std::exp(logit / std::sqrt(static_cast<double>(x.dim)));
            total += weight;
            for (int64_t e = 0; e < x.dim; ++e)
              sum[static_cast<size_t>(e)] += weight * v.at(b, h, j, e);
          }
          for (int64_t e = 0; e < x.dim; ++e)
            out.at(b, h, i, e) += sum[static_cast<size_t>(e)] / total;
        }
        for (int64_t e = 0; times > 0 && e < x.dim; ++e) out.at(b, h, i, e) /= times;
      }
    }
  return out;
}

void expect_as_oracle(const Setup& s, int64_t n) {
  SCOPED_TRACE(testing::Message() << n << " clusters " << s.clusters << " window " << s.window
                                  << (s.balanced ? " balanced" : " nearest")
                                  << (s.causal ? " causal" : "")
                                  << (s.lengths.empty() ? "" : " padded"));
  const Shape shape{2, 2, n, 5};
  const std::vector<Tensor> x = {bridge::normal(shape, "q"), bridge::normal(shape, "k"),
                                 bridge::normal(shape, "v")};
  const auto attention = bridge::build("routing", s.given(), n, s.causal);
  const Tensor mu = attention->weights()[0].value.value();
  const std::vector<oracle::Array> clean = {bridge::array_of(x[0]), bridge::array_of(x[1]),
                                            bridge::array_of(x[2])};
  for (const size_t which : {1u, 2u}) bridge::fill_padding(x[which], s.lengths, bridge::kNaN);
  const Var q(x[0], true), k(x[1], true), v(x[2], true);
  const Var out = attention->forward(q, k, v, {s.causal, s.lengths});
  const bridge::Twin twin = [&](const std::vector<oracle::Array>& inputs) {
    return expected(inputs, clean, mu, s);
  };
  EXPECT_LE(bridge::relative_error(out.value(), twin(clean).x), 40 * kEpsilon);
  const Tensor seed = bridge::normal(shape, "seed");
  out.backward(seed);
  const auto grad = [](const Var& input) {
    return input.grad().defined() ? input.grad() : Tensor::zeros(input.shape());
  };
  bridge::expect_gradients(x, {grad(q), grad(k), grad(v)}, seed, twin);
}

TEST(Routing, Balanced) {
  for (const int64_t n : {1, 7, 24})
    for (const int64_t clusters : {1, 3, 6})
      for (const int64_t window : {0, 1, 5}) {
        expect_as_oracle({clusters, window, true, false}, n);
        expect_as_oracle({clusters, window, true, false, {n / 2, n - n / 8}}, n);
      }
}

TEST(Routing, Nearest) {
  for (const int64_t n : {1, 7, 24})
    for (const int64_t clusters : {1, 3})
      for (const int64_t window : {1, 4, 50})
        for (const bool causal : {false, true}) {
          expect_as_oracle({clusters, window, false, causal}, n);
          expect_as_oracle({clusters, window, false, causal, {n / 2, n - n / 8}}, n);
        }
}

// One centroid that takes all is softmax attention of normalised rows.
TEST(Routing, OneClusterSeesAll) {
  const Shape shape{2, 2, 40, 5};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const auto run = [&](const std::string& how, bool causal) {
    const NoGrad no_grad;
    return bridge::build("routing", {{"clusters", int64_t{1}}, {"assignment", how}}, 40, causal)
        ->forward(Var(q), Var(k), Var(v), {causal, {}})
        .value();
  };
  const oracle::Array x = normalised(bridge::array_of(q)), y = normalised(bridge::array_of(k)),
                      values = bridge::array_of(v);
  EXPECT_LE(
      bridge::relative_error(run("balanced", false), oracle::softmax_attention(x, y, values, {}).x),
      40 * kEpsilon);
  for (const bool causal : {false, true})
    EXPECT_LE(bridge::relative_error(run("nearest", causal),
                                     oracle::softmax_attention(x, x, values, {causal}).x),
              40 * kEpsilon);
}

// The choice of members is made again for each prefix and changes nothing.
TEST(Routing, NearestMembersDoNotDependOnTheFuture) {
  const int64_t n = 40;
  const Tensor q = bridge::normal({1, 2, n, 5}, "q"), v = bridge::normal({1, 2, n, 5}, "v");
  const auto attention = bridge::build(
      "routing", {{"clusters", int64_t{3}}, {"assignment", std::string("nearest")}}, n, true);
  const NoGrad no_grad;
  const Tensor all = attention->forward(Var(q), Var(q), Var(v), {true, {}}).value();
  for (int64_t length = 1; length < n; ++length) {
    const Tensor short_q({1, 2, length, 5}), short_v(short_q.shape());
    for (int64_t at = 0; at < short_q.size(); ++at) {
      const int64_t from = at / (length * 5) * n * 5 + at % (length * 5);
      short_q[at] = q[from], short_v[at] = v[from];
    }
    const Tensor out =
        attention->forward(Var(short_q), Var(short_q), Var(short_v), {true, {}}).value();
    for (int64_t at = 0; at < out.size(); ++at)
      EXPECT_NEAR(static_cast<double>(out[at]),
                  static_cast<double>(all[at / (length * 5) * n * 5 + at % (length * 5)]), 1e-5)
          << length;
  }
  EXPECT_TRUE(find_variant("routing").why_not(
      {1, 1, 8, 8, 4, true}, Params("routing", find_variant("routing").params, {})));
}

// The data make the clusters: what is told is counted, and stays below the bound that `info` tells.
TEST(Routing, TheCostOfNearestIsCountedAndBounded) {
  const VariantInfo& info = find_variant("routing");
  for (const int64_t n : {64, 400}) {
    const AttentionShape shape{.batch = 2, .heads = 2, .q_len = n, .kv_len = n, .head_dim = 16};
    const auto attention =
        info.build({2, 16, n, false, 3, {}}, {{"assignment", std::string("nearest")}});
    EXPECT_FALSE(attention->declared_cost(shape));
    const auto clusters = std::lround(std::sqrt(static_cast<double>(n))),
               window = (n + clusters - 1) / clusters;
    const double flops = counted_cost(*attention, shape).flops,
                 choice = 4 * 2 * static_cast<double>(n * clusters * 16);
    EXPECT_GT(flops, choice);
    EXPECT_LE(flops, choice + 4 * 8 * static_cast<double>(n * window * 16));
  }
}

// One step of k-means, written out: to 0.9 of itself and a tenth of the mean of its positions.
TEST(Routing, CentroidsFollowTheirNearestPositions) {
  for (const bool balanced : {true, false})
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {13, 40}, {0, 0}}) {
      const routing_test::Setup s{5, 8, balanced, false, lengths};
      Given given = s.given();
      given["centroid_decay"] = 0.9;
      const Shape shape{2, 2, 40, 6};
      const auto attention = bridge::build("routing", given, 40, false, 3, 6);
      const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k");
      const oracle::Array x = normalised(bridge::array_of(q)),
                          y = balanced ? normalised(bridge::array_of(k)) : x;
      const Weight weight = attention->weights()[0];
      EXPECT_TRUE(weight.moved && !weight.learned);
      const Tensor mu = weight.value.value().clone();
      bridge::fill_padding(q, lengths, bridge::kNaN);
      bridge::fill_padding(k, lengths, bridge::kNaN);
      as_following(*attention)->follow(q, k, {false, lengths});
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t c = 0; c < 5; ++c) {
          std::vector<double> want(6);
          for (const oracle::Array* const rows : {&x, &y}) {
            std::vector<double> sum(6);
            double members = 0;
            for (int64_t b = 0; b < 2; ++b)
              for (int64_t i = 0; i < s.valid(b, 40); ++i) {
                if (nearest(*rows, mu, b, h, i) != c) continue;
                double squares = 0;
                for (int64_t e = 0; e < 6; ++e) squares += std::pow(rows->at(b, h, i, e), 2);
                for (int64_t e = 0; e < 6; ++e)
                  sum[static_cast<size_t>(e)] += rows->at(b, h, i, e) / std::sqrt(squares);
                ++members;
              }
            for (size_t e = 0; members > 0 && e < 6; ++e) want[e] += sum[e] / members / 2;
          }
          const bool stays = std::all_of(want.begin(), want.end(), [](double z) { return z == 0; });
          double squares = 0;
          for (int64_t e = 0; e < 6; ++e) {
            double& to = want[static_cast<size_t>(e)];
            to = (stays ? 1 : 0.9) * static_cast<double>(mu[(h * 5 + c) * 6 + e]) + 0.1 * to;
            squares += to * to;
          }
          for (int64_t e = 0; e < 6; ++e)
            EXPECT_NEAR(static_cast<double>(weight.value.value()[(h * 5 + c) * 6 + e]),
                        want[static_cast<size_t>(e)] / std::sqrt(squares), 50 * kEpsilon);
        }
    }
}

}  // namespace
}  // namespace attn::routing_test
