// qk_norm against its equations at gains that are not 1, decoding with the same, and the identity
// that the size of queries and keys does not matter.
#include <gtest/gtest.h>

#include "tests/variants/normalisers/perturbed.h"

namespace attn::qk_norm_test {
namespace {

using perturbed::Given;

// Rows over their size, times gain(h, c).
template <class GainOf>
oracle::Array over_size(const oracle::Array& x, bool mean, const GainOf& gain) {
  oracle::Array out = x;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.len; ++i) {
        double sum = 0;
        for (int64_t c = 0; c < x.dim; ++c) sum += x.at(b, h, i, c) * x.at(b, h, i, c);
        const double size =
            mean ? std::sqrt(sum / static_cast<double>(x.dim) + 1e-6) : std::sqrt(sum + 1e-12);
        for (int64_t c = 0; c < x.dim; ++c) out.at(b, h, i, c) *= gain(h, c) / size;
      }
  return out;
}

oracle::Array rms(const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
  const auto gains = [&](size_t which) {
    return [&x, which](int64_t, int64_t c) { return x[which].at(0, 0, 0, c); };
  };
  return oracle::softmax_attention(over_size(x[0], true, gains(3)), over_size(x[1], true, gains(4)),
                                   x[2], seen);
}

oracle::Array l2(const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
  const auto heat = [&x](int64_t h, int64_t) { return x[3].at(0, 0, h, 0); };
  const auto one = [](int64_t, int64_t) { return 1.0; };
  return oracle::softmax_attention(over_size(x[0], false, heat), over_size(x[1], false, one), x[2],
                                   seen, 1);
}

const Given kL2 = {{"norm", std::string("l2")}};

TEST(QkNorm, EqualsItsEquationsForwardAndBackward) {
  perturbed::expect_twin_everywhere("qk_norm", {}, rms);
  perturbed::expect_twin_everywhere("qk_norm", kL2, l2);
}

TEST(QkNorm, DecodesWithGainsThatAreNotOne) {
  for (const int64_t kv_heads : {4, 2, 1}) {
    perturbed::expect_decoding("qk_norm", {}, kv_heads);
    perturbed::expect_decoding("qk_norm", kL2, kv_heads);
  }
}

TEST(QkNorm, GradientsDoNotDependOnThreads) {
  perturbed::expect_gradients_by_threads("qk_norm", {});
  perturbed::expect_gradients_by_threads("qk_norm", kL2);
}

TEST(QkNorm, TheSizeOfQueriesAndKeysDoesNotMatter) {
  for (const Given& given : {Given{}, kL2}) {
    const auto attention = perturbed::build("qk_norm", given, {2, 6, 30, false, 3, {}});
    const NoGrad no_grad;
    const Tensor v = bridge::normal({1, 2, 30, 6}, "v");
    const auto of = [&](double scale) {
      return attention
          ->forward(Var(bridge::normal(v.shape(), "q", 100 * scale)),
                    Var(bridge::normal(v.shape(), "k", 100 / scale)), Var(v))
          .value();
    };
    EXPECT_LE(bridge::relative_error(of(1), bridge::array_of(of(4)).x), 1e-4);
  }
}

TEST(QkNorm, TemperatureStartsAtTheLongestLength) {
  const auto attention = find_variant("qk_norm").build({3, 6, 100, true, 1, {}}, kL2);
  for (const real t : attention->weights()[0].value.value().values())
    EXPECT_NEAR(static_cast<double>(t), std::log2(9900.0), 1e-5);
}

}  // namespace
}  // namespace attn::qk_norm_test
