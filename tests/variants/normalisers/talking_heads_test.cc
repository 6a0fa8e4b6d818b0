// talking_heads against its equations at matrices that mix, for 1 to 9 heads, and the identity that
// a permutation of heads after the softmax hands weights to other values.
#include <gtest/gtest.h>

#include "tests/variants/normalisers/perturbed.h"

namespace attn::talking_heads_test {
namespace {

// J' = J·P_l and U = W·P_w, over all heads at once: x is q, k, v, P_l, P_w.
oracle::Array equation(const std::vector<oracle::Array>& x, const oracle::Visibility& seen) {
  const oracle::Array &q = x[0], &k = x[1], &v = x[2];
  const auto heads = static_cast<size_t>(q.heads), keys = static_cast<size_t>(k.len);
  using Matrix = std::vector<std::vector<double>>;  // [heads][keys]
  const auto mixed = [&](const Matrix& from, const oracle::Array& by) {
    Matrix to(heads, std::vector<double>(keys, 0));
    for (size_t h = 0; h < heads; ++h)
      for (size_t g = 0; g < heads; ++g)
        for (size_t j = 0; j < keys; ++j)
          to[g][j] += by.at(0, 0, static_cast<int64_t>(h), static_cast<int64_t>(g)) * from[h][j];
    return to;
  };
  oracle::Array out(q.batch, q.heads, q.len, v.dim);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t i = 0; i < q.len; ++i) {
      Matrix logits(heads, std::vector<double>(keys, 0));
      const auto visible = [&](size_t j) {
        return oracle::sees(seen, b, i, static_cast<int64_t>(j), q.len, k.len);
      };
      for (size_t h = 0; h < heads; ++h)
        for (size_t j = 0; j < keys; ++j)
          if (visible(j))
            logits[h][j] = oracle::dot(q.row(b, static_cast<int64_t>(h), i),
                                       k.row(b, static_cast<int64_t>(h), static_cast<int64_t>(j))) /
                           std::sqrt(static_cast<double>(q.dim));
      Matrix weights = mixed(logits, x[3]);
      for (std::vector<double>& row : weights) {
        double total = 0;
        for (size_t j = 0; j < keys; ++j) total += row[j] = visible(j) ? std::exp(row[j]) : 0;
        for (double& w : row) w = total > 0 ? w / total : 0;
      }
      weights = mixed(weights, x[4]);
      for (size_t h = 0; h < heads; ++h)
        for (size_t j = 0; j < keys; ++j)
          for (int64_t c = 0; visible(j) && c < v.dim; ++c)
            out.at(b, static_cast<int64_t>(h), i, c) +=
                weights[h][j] * v.at(b, static_cast<int64_t>(h), static_cast<int64_t>(j), c);
    }
  return out;
}

TEST(TalkingHeads, EqualsItsEquationsForwardAndBackward) {
  perturbed::expect_twin_everywhere("talking_heads", {}, equation);
  for (const int64_t heads : {1, 6, 9})
    perturbed::expect_twin("talking_heads", {}, {13, 21, heads, 4}, {true, {21, 10}}, equation);
}

TEST(TalkingHeads, DecodesWithMatricesThatMix) {
  for (const int64_t kv_heads : {4, 2, 1})
    perturbed::expect_decoding("talking_heads", {}, kv_heads);
}

TEST(TalkingHeads, GradientsDoNotDependOnThreads) {
  perturbed::expect_gradients_by_threads("talking_heads", {});
}

// P_w that swaps two heads: each head's weights meet the other's values.
TEST(TalkingHeads, RegressionMatricesGoFromRowToColumn) {
  const auto attention = find_variant("talking_heads").build({3, 6, 20, false, 3, {}}, {});
  const Tensor turn = Tensor::of({1, 3, 3}, std::vector<double>{0, 1, 0, 0, 0, 1, 1, 0, 0});
  attention->weights()[1].value.set_value(
      turn);  // head 0's weights go to head 1, 1's to 2, 2's to 0
  const NoGrad no_grad;
  const Tensor q = bridge::normal({1, 3, 20, 6}, "q"), k = bridge::normal({1, 3, 20, 6}, "k"),
               v = bridge::normal({1, 3, 20, 6}, "v");
  const auto turned = [](const Tensor& x) {  // head h is what was head h - 1
    const Tensor to(x.shape());
    for (int64_t h = 0; h < 3; ++h)
      std::copy_n(x.data() + (h + 2) % 3 * 120, 120, to.data() + h * 120);
    return to;
  };
  const oracle::Array want = oracle::softmax_attention(
      bridge::array_of(turned(q)), bridge::array_of(turned(k)), bridge::array_of(v), {});
  EXPECT_LE(bridge::relative_error(attention->forward(Var(q), Var(k), Var(v)).value(), want.x),
            40 * kEpsilon);
}

}  // namespace
}  // namespace attn::talking_heads_test
