// softmax_one against one more key without a value, its identity with full attention, and what
// sinks of several sizes do; the log-sum-exp of softmax attention and its gradient.
#include <gtest/gtest.h>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/variants/textbook_cases.h"
#include "variants/normalisers/normalisers.h"
#include "variants/softmax/softmax.h"

namespace attn::softmax_one_test {
namespace {

const std::map<std::string, ParamValue> kLearned = {{"learned", true}};

// Unlike the start of 0: 0.5 and -2 for the heads.
void set_sinks(const Attention& attention) {
  const Tensor sinks = attention.weights()[0].value.value().clone();
  for (int64_t h = 0; h < sinks.size(); ++h) sinks[h] = h % 2 ? real(-2) : real(0.5);
  attention.weights()[0].value.set_value(sinks);
}

// Softmax over the visible keys and one more, whose logit is s and whose value is 0.
oracle::Array twin(const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
  const oracle::Array &q = x[0], &k = x[1], &v = x[2];
  oracle::Array out(q.batch, q.heads, q.len, v.dim);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        const double sink = x.size() > 3 ? x[3].at(0, 0, 0, h) : 0;
        double total = std::exp(sink);
        for (int64_t j = 0; j < k.len; ++j) {
          if (!oracle::sees(seen, b, i, j, q.len, k.len)) continue;
          const double weight = std::exp(oracle::dot(q.row(b, h, i), k.row(b, h, j)) /
                                         std::sqrt(static_cast<double>(q.dim)));
          total += weight;
          for (int64_t c = 0; c < v.dim; ++c) out.at(b, h, i, c) += weight * v.at(b, h, j, c);
        }
        for (int64_t c = 0; c < v.dim; ++c) out.at(b, h, i, c) /= total;
      }
  return out;
}

TEST(SoftmaxOne, EqualsOneMoreKeyForwardAndBackward) {
  for (const bool causal : {false, true})
    for (const bool padded : {false, true})
      for (const auto& [q_len, kv_len] :
           {std::pair<int64_t, int64_t>{37, 37}, {5, 33}, {34, 9}, {1, 1}, {101, 263}}) {
        SCOPED_TRACE(testing::Message()
                     << q_len << "x" << kv_len << " causal " << causal << " padded " << padded);
        const auto attention =
            find_variant("softmax_one").build({2, 5, kv_len, causal, 3, {}}, kLearned);
        set_sinks(*attention);
        Mask mask{causal, {}};
        if (padded) mask.kv_lengths = {kv_len / 2, 0};
        const oracle::Visibility seen{causal, mask.kv_lengths};
        std::vector<Tensor> inputs = {bridge::normal({2, 2, q_len, 5}, "q"),
                                      bridge::normal({2, 2, kv_len, 5}, "k"),
                                      bridge::normal({2, 2, kv_len, 5}, "v")};
        for (const size_t which : {1, 2})
          bridge::fill_padding(inputs[which], mask.kv_lengths, bridge::kNaN);
        std::vector<Var> vars;
        for (const Tensor& t : inputs) vars.emplace_back(t, true);
        const Var sinks = attention->weights()[0].value;
        inputs.push_back(sinks.value().reshaped({1, 2}));
        std::vector<oracle::Array> arrays = bridge::arrays_of(inputs);
        const Var out = attention->forward(vars[0], vars[1], vars[2], mask);
        EXPECT_LE(bridge::relative_error(out.value(), twin(arrays, seen).x), 40 * kEpsilon);
        const Tensor seed = bridge::normal(out.shape(), "seed");
        out.backward(seed);
        if (kv_len < 100)
          bridge::expect_gradients(
              inputs,
              {vars[0].grad(), vars[1].grad(), vars[2].grad(), sinks.grad().reshaped({1, 2})}, seed,
              [&](const std::vector<oracle::Array>& x) { return twin(x, seen); });
      }
}

TEST(SoftmaxOne, WithoutALearnedSinkItIsOne) {
  textbook_cases::expect_oracle("softmax_one", {}, 5, 1, twin);
}

TEST(SoftmaxOne, DecodesWithSinks) {
  constexpr int64_t kLength = 150, kDim = 6;
  const auto attention =
      find_variant("softmax_one").build({4, kDim, kLength, true, 3, {}}, kLearned);
  set_sinks(*attention);
  const NoGrad no_grad;
  const Tensor q = bridge::normal({2, 4, kLength, kDim}, "q"),
               k = bridge::normal({2, 2, kLength, kDim}, "k"),
               v = bridge::normal({2, 2, kLength, kDim}, "v");
  const auto twice = [](const Tensor& x) {  // each head for two query heads
    const Tensor all({2, 4, x.dim(2), x.dim(3)});
    const int64_t size = x.dim(2) * x.dim(3);
    for (int64_t h = 0; h < 8; ++h)
      std::copy_n(x.data() + h / 2 * size, size, all.data() + h * size);
    return all;
  };
  const Tensor want =
      attention->forward(Var(q), Var(twice(k)), Var(twice(v)), {.causal = true}).value();
  const auto rows = [&](const Tensor& t, int64_t from, int64_t to) {
    const int64_t heads = t.dim(0) * t.dim(1);
    const Tensor part(t.shape().with(2, to - from));
    for (int64_t h = 0; h < heads; ++h)
      std::copy_n(t.data() + (h * kLength + from) * kDim, (to - from) * kDim,
                  part.data() + h * (to - from) * kDim);
    return part;
  };
  for (const int count : {1, 2}) {
    const ScopedThreads scoped(count);
    const auto decoder = attention->decoder(2, kLength, 2);
    decoder->extend(rows(k, 0, 3), rows(v, 0, 3));
    for (int64_t i = 3; i < kLength; ++i) {
      const Tensor out({2, 4, 1, kDim});
      decoder->step(rows(q, i, i + 1), rows(k, i, i + 1), rows(v, i, i + 1), out);
      ASSERT_LE(bridge::relative_error(out, bridge::array_of(rows(want, i, i + 1)).x),
                60 * kEpsilon)
          << i;
    }
  }
}

// Logits of ±100 and a sink of 90: the sum of weights beside a plain 1, or beside an exponential
// without the maximum, is off or infinite.
TEST(SoftmaxOne, RegressionLargeLogitsMeetTheSinkAtTheSameMaximum) {
  const Tensor one = Tensor::full({1, 1, 1, 1}, 1);
  for (const double logit : {-100.0, 90.0, 100.0}) {
    const auto attention = find_variant("softmax_one").build({1, 1, 1, true, 1, {}}, kLearned);
    attention->weights()[0].value.set_value(Tensor::full({1}, 90));
    const Tensor key = Tensor::full({1, 1, 1, 1}, static_cast<real>(logit));
    const double want = 1 / (1 + std::exp(90 - logit));
    const Tensor got = attention->forward(Var(one), Var(key), Var(one), {.causal = true}).value();
    EXPECT_NEAR(static_cast<double>(got[0]), want, 1e-5 * want + 1e-37);
    const Tensor out({1, 1, 1, 1});
    attention->decoder(1, 1)->step(one, key, one, out);
    EXPECT_NEAR(static_cast<double>(out[0]), want, 1e-5 * want + 1e-37);
  }
}

TEST(SoftmaxOne, GradientsDoNotDependOnThreads) {
  const auto attention = find_variant("softmax_one").build({2, 8, 300, true, 1, {}}, kLearned);
  set_sinks(*attention);
  std::vector<double> first;
  for (const int count : {1, 2, 3}) {
    const ScopedThreads scoped(count);
    attention->weights()[0].value.zero_grad();
    const Var q(bridge::normal({3, 2, 300, 8}, "q"), true), k(bridge::normal({3, 2, 300, 8}, "k")),
        v(bridge::normal({3, 2, 300, 8}, "v"));
    attention->forward(q, k, v, {.causal = true}).backward(bridge::normal(q.shape(), "seed"));
    const Tensor grad = attention->weights()[0].value.grad();
    if (first.empty())
      for (const real x : grad.values()) first.push_back(static_cast<double>(x));
    EXPECT_LE(bridge::relative_error(grad, first), 20 * kEpsilon);
  }
}

// d/dL of Σ_i a_i·L_i + Σ seed·out, each alone and both together.
TEST(LogSum, HasTheGradientOfBothResults) {
  const oracle::Visibility seen{true, {17, 9}};
  const std::vector<Tensor> inputs = {bridge::normal({2, 2, 20, 5}, "q"),
                                      bridge::normal({2, 2, 20, 5}, "k"),
                                      bridge::normal({2, 2, 20, 5}, "v")};
  const Tensor seed = bridge::normal({2, 2, 20, 6}, "seed");
  // Columns 0 to 4 are the output, column 5 is the log-sum-exp.
  const auto both = [&](const std::vector<oracle::Array>& x) {
    const oracle::Array out = oracle::softmax_attention(x[0], x[1], x[2], seen);
    oracle::Array all(2, 2, 20, 6);
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t i = 0; i < 20; ++i) {
          double total = 0;
          for (int64_t j = 0; j < 20; ++j)
            if (oracle::sees(seen, b, i, j, 20, 20))
              total += std::exp(oracle::dot(x[0].row(b, h, i), x[1].row(b, h, j)) / std::sqrt(5.0));
          for (int64_t c = 0; c < 5; ++c) all.at(b, h, i, c) = out.at(b, h, i, c);
          all.at(b, h, i, 5) = std::log(total);
        }
    return all;
  };
  for (const int which : {0, 1, 2}) {
    std::vector<Var> vars;
    for (const Tensor& t : inputs) vars.emplace_back(t, true);
    const SoftmaxResult got =
        softmax_with_log_sum(vars[0], vars[1], vars[2], {.causal = true, .kv_lengths = {17, 9}});
    const Tensor used = seed.clone();
    for (int64_t i = 0; i < used.size(); ++i)
      if ((which == 0 && i % 6 == 5) || (which == 1 && i % 6 < 5)) used[i] = 0;
    const std::vector<Var> parts = {got.out, reshape(got.log_sum, {2, 2, 20, 1})};
    const Var all = concat(parts, 3);
    std::vector<oracle::Array> arrays = bridge::arrays_of(inputs);
    EXPECT_LE(bridge::relative_error(all.value(), both(arrays).x), 40 * kEpsilon);
    if (which == 0)
      got.out.backward(slice(Var(used), 3, 0, 5).value());
    else
      all.backward(used);
    bridge::expect_gradients(inputs, {vars[0].grad(), vars[1].grad(), vars[2].grad()}, used, both);
  }
}

}  // namespace
}  // namespace attn::softmax_one_test
