// synthesizer against its four kinds of logits one by one, its limits, and what others get wrong:
// heads and rows reshaped into each other, and factors that forget the length.
#include <gtest/gtest.h>

#include "variants/reference/synthesizer.h"
#include "tests/variants/twin_check.h"

namespace attn::synthesizer_test {
namespace {

using bridge::array_of;

const std::vector<std::string> kKinds = {"dense", "random", "factorized_dense",
                                         "factorized_random"};

TEST(Synthesizer, EqualsItsOracle) {
  for (const std::string& kind : kKinds)
    for (const int64_t length : {1, 2, 37})
      for (const bool causal : {false, true})
        for (const bool padded : {false, true}) {
          SCOPED_TRACE(testing::Message() << kind << " " << length << (causal ? " causal" : "")
                                          << (padded ? " padded" : ""));
          std::vector<int64_t> lengths;
          if (padded) lengths = {length / 2, length - 1};
          const bridge::TwinCase c{
              "synthesizer", {{"kind", kind}}, {2, 2, length, length, 5, causal}, lengths};
          bridge::expect_twin(c, [&](const Attention&, const Tensor&) {
            return [=](const std::vector<oracle::Array>& x) {
              return oracle::synthesizer(kind, x[0], x[2], x[3], x.back(), {causal, lengths});
            };
          });
        }
}

TEST(Synthesizer, AsLongRangeArenaEqualsItsOracle) {
  for (const int64_t length : {1, 2, 37, 80})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << length << (causal ? " causal" : "") << (padded ? " padded" : ""));
        std::vector<int64_t> lengths;
        if (padded) lengths = {length / 2, length - 1};
        const bridge::TwinCase c{"synthesizer",
                                 {{"as", std::string("lra")}},
                                 {2, 2, length, length, 5, causal},
                                 lengths};
        bridge::expect_twin(c, [&](const Attention&, const Tensor&) {
          return [=](const std::vector<oracle::Array>& x) {
            return oracle::synthesizer_lra(x[0], x[1], x[2], x[3], {causal, lengths});
          };
        });
      }
}

// A Synthesizer compares nothing; Long Range Arena's default adds its matrix to q·k/√d.
TEST(Synthesizer, RegressionLongRangeArenaComparesQueriesWithKeys) {
  const Tensor q = bridge::normal({1, 2, 20, 6}, "q"), k = bridge::normal({1, 2, 20, 6}, "k"),
               other = bridge::normal({1, 2, 20, 6}, "other");
  for (const std::string as : {"paper", "lra"}) {
    const auto attention =
        find_variant("synthesizer").build({2, 6, 20, false, 1, {}}, {{"as", as}});
    const NoGrad no_grad;
    const Tensor first = attention->forward(Var(q), Var(k), Var(k)).value(),
                 second = attention->forward(Var(q), Var(other), Var(k)).value();
    EXPECT_EQ(bridge::same_bits(first, second), as == "paper") << as;
  }
}

std::unique_ptr<Attention> built(const std::string& kind, int64_t length) {
  return find_variant("synthesizer").build({2, 6, length, false, 1, {}}, {{"kind", kind}});
}

TEST(Synthesizer, RandomLogitsSetToProductsAreSoftmaxAttention) {
  const Tensor q = bridge::normal({1, 2, 20, 6}, "q"), k = bridge::normal({1, 2, 20, 6}, "k"),
               v = bridge::normal({1, 2, 20, 6}, "v");
  const auto attention = built("random", 24);
  const oracle::Array a = array_of(q), b = array_of(k);
  const Tensor logits = Tensor::zeros({2, 24, 24});
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 20; ++i)
      for (int64_t j = 0; j < 20; ++j)
        logits[(h * 24 + i) * 24 + j] =
            static_cast<real>(oracle::dot(a.row(0, h, i), b.row(0, h, j)) / std::sqrt(6.0));
  attention->weights()[0].value.set_value(logits);
  const NoGrad no_grad;
  EXPECT_TRUE(bridge::relative_error(attention->forward(Var(q), Var(k), Var(v)).value(),
                                     oracle::softmax_attention(a, b, array_of(v), {}).x) <=
              100 * kEpsilon);
}

TEST(Synthesizer, WithoutLogitsItIsTheMean) {
  const Tensor x = bridge::normal({1, 2, 21, 6}, "x");
  for (const std::string& kind : kKinds) {
    const auto attention = built(kind, 21);
    for (const Weight& weight : attention->weights())
      weight.value.set_value(Tensor::zeros(weight.value.shape()));
    const oracle::Array a = array_of(x);
    const oracle::Array want =
        oracle::average(a, a, {}, [](int64_t, int64_t, int64_t, int64_t) { return 0.0; });
    const NoGrad no_grad;
    EXPECT_TRUE(bridge::relative_error(attention->forward(Var(x), Var(x), Var(x)).value(),
                                       want.x) <= 40 * kEpsilon)
        << kind;
  }
}

TEST(Synthesizer, AQueryMovesItsOwnRowOfItsOwnHead) {
  const Tensor v = bridge::normal({1, 2, 20, 6}, "v"), q = bridge::normal({1, 2, 20, 6}, "q"),
               other = q.clone();
  for (int64_t c = 0; c < 6; ++c) other[(20 + 3) * 6 + c] = 2;  // head 1, row 3
  for (const char* const kind : {"dense", "factorized_dense"}) {
    const auto attention = built(kind, 20);
    const NoGrad no_grad;
    const Tensor a = attention->forward(Var(q), Var(q), Var(v)).value(),
                 b = attention->forward(Var(other), Var(q), Var(v)).value();
    for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i] != b[i], i / 6 == 23) << kind << " " << i;
  }
}

TEST(Synthesizer, RefusesLongerSequences) {
  for (const std::string& kind : kKinds) {
    const auto attention = built(kind, 8);
    const Var x(Tensor::zeros({1, 2, 9, 6}));
    EXPECT_THROW(attention->forward(x, x, x), Error) << kind;
  }
}

}  // namespace
}  // namespace attn::synthesizer_test
