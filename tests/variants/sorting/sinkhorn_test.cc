// sinkhorn against block sums, balancing and sorting written out, and what others get wrong: a
// permutation that is computed and never applied, or applied to keys alone. As Long Range Arena's
// code has it, against that.
#include <gtest/gtest.h>

#include "variants/reference/sinkhorn.h"
#include "tests/variants/oracle_bridge.h"

namespace attn::sinkhorn_test {
namespace {

using bridge::array_of;

TEST(Sinkhorn, EqualsItsOracle) {
  for (const int64_t length : {1, 8, 24, 37})
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message() << length << (padded ? " padded" : ""));
      const oracle::SinkhornSettings s{8, 5, 0.75};
      std::vector<int64_t> lengths;
      if (padded) lengths = {length / 2, length - 1};
      // Queries small enough that the scores stay soft
      const bridge::TwinCase c{"sinkhorn",
                               {{"block", s.block}, {"iterations", s.iterations}},
                               {2, 2, length, length, 5, false},
                               lengths,
                               0.3};
      bridge::expect_twin(c, [&](const Attention&, const Tensor&) {
        return [=](const std::vector<oracle::Array>& x) {
          return oracle::sinkhorn(x[0], x[1], x[2], x[3], s, {false, lengths});
        };
      });
    }
}

TEST(Sinkhorn, AsLongRangeArenaEqualsItsOracle) {
  for (const int64_t length : {1, 8, 24, 37})
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message() << length << (padded ? " padded" : ""));
      std::vector<int64_t> lengths;
      if (padded) lengths = {length / 2, length - 1};
      const bridge::TwinCase c{"sinkhorn",
                               {{"block", int64_t{8}}, {"as", std::string("lra")}},
                               {2, 2, length, length, 5, false},
                               lengths};
      bridge::expect_twin(c, [&](const Attention&, const Tensor&) {
        return [=](const std::vector<oracle::Array>& x) {
          return oracle::sinkhorn_lra(x[0], x[1], x[2], 8, {false, lengths});
        };
      });
    }
}

// Values of one each: the paper's weights sum to one; Long Range Arena's answer adds a sum over
// runs of n / block values, and no learned sorting can change it.
TEST(Sinkhorn, RegressionLongRangeArenaAddsSumsAndSortsNothing) {
  const Tensor q = bridge::normal({1, 1, 24, 4}, "q"), k = bridge::normal({1, 1, 24, 4}, "k"),
               ones = Tensor::full({1, 1, 24, 4}, 1);
  for (const auto& [as, sum] : {std::pair<std::string, double>{"paper", 1}, {"lra", 1 + 24 / 8}}) {
    const auto attention =
        find_variant("sinkhorn")
            .build({1, 4, 24, false, 1, {}}, {{"block", int64_t{8}}, {"as", as}});
    EXPECT_EQ(attention->weights().size(), as == "paper" ? size_t{1} : size_t{0});
    const NoGrad no_grad;
    const Tensor out = attention->forward(Var(q), Var(k), Var(ones)).value();
    for (int64_t i = 0; i < out.size(); ++i)
      EXPECT_NEAR(static_cast<double>(out[i]), sum, 1e-5) << as << " " << i;
  }
}

// Block I of the queries asks for block order[I] so loudly that nothing else is left.
struct Hard {
  std::vector<int64_t> order;
  int64_t block = 8;
  Tensor q, k, v;

  explicit Hard(std::vector<int64_t> wanted) : order(std::move(wanted)) {
    const int64_t blocks = std::ssize(order), n = blocks * block;
    q = bridge::normal({1, 1, n, 8}, "q", 0.1);
    k = bridge::normal({1, 1, n, 8}, "k"), v = bridge::normal({1, 1, n, 8}, "v");
    for (int64_t i = 0; i < n; ++i) q[i * 8 + i / block] = 3;
  }
  Tensor output() const {
    const auto attention =
        find_variant("sinkhorn")
            .build({1, 8, q.dim(2), false, 1, {}},
                   {{"block", block}, {"temperature", 0.1}, {"iterations", int64_t{20}}});
    const Tensor weight = Tensor::zeros({1, 8, std::ssize(order)});
    for (int64_t i = 0; i < std::ssize(order); ++i)
      weight[i * std::ssize(order) + order[static_cast<size_t>(i)]] = 1;
    attention->weights()[0].value.set_value(weight);
    const NoGrad no_grad;
    return attention->forward(Var(q), Var(k), Var(v)).value();
  }
  void expect(const std::function<bool(int64_t i, int64_t j)>& sees) const {
    const oracle::Visibility seen{false, {}, -1, [&](int64_t, int64_t, int64_t i, int64_t j) {
                                    return sees(i / block, j / block);
                                  }};
    const oracle::Array want =
        oracle::softmax_attention(array_of(q), array_of(k), array_of(v), seen);
    EXPECT_LE(bridge::relative_error(output(), want.x), 200 * kEpsilon);
  }
};

TEST(Sinkhorn, AHardPermutationMovesBlocksOfKeysAndValues) {
  const Hard hard({2, 0, 3, 1});
  hard.expect(
      [&](int64_t i, int64_t j) { return i == j || j == hard.order[static_cast<size_t>(i)]; });
}

TEST(Sinkhorn, SortedToItselfABlockIsLocal) {
  Hard({0, 1, 2}).expect([](int64_t i, int64_t j) { return i == j; });
}

TEST(Sinkhorn, TwoBlocksSwappedSeeAll) {
  Hard({1, 0}).expect([](int64_t, int64_t) { return true; });
}

TEST(Sinkhorn, RefusesLongerSequences) {
  const auto attention = find_variant("sinkhorn").build({1, 4, 64, false, 1, {}}, {});
  const Var x(Tensor::zeros({1, 1, 65, 4}));
  EXPECT_THROW(attention->forward(x, x, x), Error);
}

}  // namespace
}  // namespace attn::sinkhorn_test
